"""Questions asked of the estimator, and its answers in the forms others read.  No Qt."""
