from .acquisition import RULES as RULES, choose as choose, next_pairs as next_pairs
from .state import State as State, stop as stop
