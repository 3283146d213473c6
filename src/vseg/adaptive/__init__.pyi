from .acquisition import RULES as RULES, next_pairs as next_pairs, select_candidates as select_candidates
from .state import State as State, stop_reason as stop_reason
from .two_stage import two_stage_pairs as two_stage_pairs
