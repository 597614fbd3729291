"""The form: one row for each field of the table, built from the table."""
