"""
Agents that are services, spoken to by A2A (Agent2Agent), by its official SDK: `backend.A2aBackend`.

    home.py       the one door to the network: where requests may go, who gets the token, how much comes back
    card.py       the agent's card: fetched, doubted, and the way in that it names
    lines.py      what an agent says, as lines; pure
    cursor.py     how far it was heard, as text; pure
    since.py      what our own server offers beside: only what is new
    faults.py     what went wrong, in our words
"""
