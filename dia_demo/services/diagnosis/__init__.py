"""What this machine and its devices can do: the doctor's report, and the check of a device."""
