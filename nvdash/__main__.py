"""`python -m nvdash COMMAND …` is what `./run COMMAND …` calls."""

from nvdash.cli import main

if __name__ == "__main__":
    main()
