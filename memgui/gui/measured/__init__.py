"""The Measured tab: what a real run used, beside the estimate."""
