"""Speech for programs: a job of plain values, and what turns it into sound while it is made."""
