"""Speech for programs over HTTP: OpenAI's requests, dialogues, batches, and answers that can be
resumed."""
