"""`python -m tickwork`: the command `tickwork`, also where it is not on the path."""

from tickwork.cli import main

if __name__ == "__main__":
    main()
