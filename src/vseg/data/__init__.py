"""The data of a study: locations, pairs, responses, maps, and the files that hold them.

layout          Grid and Scatter: where the tested locations are, and which are neighbours
pairs           Pairs: the unordered pairs of locations that one block tests
responses       Responses: one row per trial; Tally: 'same' answers and trials per pair
maps            Maps: the probability of each segment at each location
tables          load(): read responses from CSV or Parquet, or from an exported folder
dataset         the names of the files in an exported folder
columns         the description of every column of the exported tables
table_writing   write CSV and Parquet
psych_ds        the description file that Psych-DS asks for
catch_trials    catch trials of an exported folder
importers       read data of jsPsych, JATOS and spreadsheets
"""
