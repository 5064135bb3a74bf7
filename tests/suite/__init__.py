"""The suite itself: which tests are run, in which order, by how many processes, and what they may cost."""
