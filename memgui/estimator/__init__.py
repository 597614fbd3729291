"""Pure arithmetic on integers: no Qt, no files, no clock, no locale."""
