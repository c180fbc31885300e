"""`python -m restudy.cli`: the same as `restudy`."""

from restudy.cli import main

main()
