"""Submit, ask and steer: everything that a program may do with a store, whether or not a node runs in it."""
