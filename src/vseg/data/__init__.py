"""The data of a study: locations, pairs, responses and maps, and the files that hold them.

layout          Grid and Scatter: where the tested locations are, and which are neighbours
pairs           Pairs: the unordered pairs of locations that one block tests
responses       Responses: one row per trial; Tally: 'same' answers and trials per pair
maps            Maps: the probability of each segment at each location
tables          load(): read responses from CSV, Parquet or a dataset folder
dataset         Dataset: the files of a dataset folder, as vseg export and vseg import write it
columns         the description of every column of the exported tables
table_writing   write CSV and Parquet
file_reading    read CSV and Parquet of unknown origin, within limits
psych_ds        the description files that Psych-DS requires
catch_trials    count the catch trials of a dataset folder
importers       import data from jsPsych, JATOS and spreadsheets
"""
