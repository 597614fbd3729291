"""What is open and how it is looked at: the scenario, its undo stack, its result.  No widgets."""
