"""The operator's tools: never packaged into a Lambda."""
