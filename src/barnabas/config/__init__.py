"""Settings: one declaration each gives the typed field, the parser, the documentation and the DescribeConfigs row."""
