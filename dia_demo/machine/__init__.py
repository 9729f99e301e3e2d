"""The machine: its cores, memory and instructions, and threads and processes of our own."""
