"""The command-line tool: `attend`, `python -m attend`."""
import sys

from attend import _attend


def main():
    """Runs the tool with the arguments of this process, and ends the process with its exit code"""
    sys.exit(_attend.tool(["attend", *sys.argv[1:]], sys.executable or ""))


if __name__ == "__main__":
    main()
