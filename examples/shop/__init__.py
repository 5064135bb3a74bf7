"""An order service: a web application, workers, a nightly report, and tests of all of it. See README.md."""
