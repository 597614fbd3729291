"""The band at the top: does it fit, by how much, what to do."""
