"""One small module a peer. They run in the environment of the peer, so they import nothing but it and `common`."""
