"""Print the tables of docs/listening.md on what a listening test can find.

`python -m tools.listening`: the designs are simulated by the module that plans tests on the page
and on the command line (dia_demo/services/listening/verdict/planning.py), with fixed seeds.
"""

from tools.listening.tables import table_of_rounds, table_of_two

if __name__ == "__main__":
    print(f"{table_of_two()}\n\n{table_of_rounds()}")
