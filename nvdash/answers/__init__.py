"""The users' questions, one function each; the only door for every front end."""
