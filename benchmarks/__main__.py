"""Run the benchmarks of speed that need nothing but the program, one after the other."""

from benchmarks import edit_to_answer, search_speed


def main() -> None:
    """Print each benchmark's table under its name."""
    for benchmark in (search_speed, edit_to_answer):
        print(f"== {benchmark.__name__}")
        benchmark.main()


main()
