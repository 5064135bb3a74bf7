"""`make mutants`: breaks the code by chance, one place at a time, and shows what no test notices.

places        which files, from a seed; and what a mutant is
of_python     what can be changed in a file of Python
of_lua        what can be changed in a script of Lua
swapping      puts a mutant in the place of the code that this process has loaded
forking       collects the tests once, and forks for each mutant
report        what is printed, the mutants that are known to be equivalent, and the exit code
"""
