"""Several brokers of one machine, from one property file, under one supervisor."""
