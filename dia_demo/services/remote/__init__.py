"""Takes that another process makes: requests and events as plain values, and how a take goes on
elsewhere when its engine is lost."""
