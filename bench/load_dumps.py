#!/usr/bin/env python3
"""Loads every pickle of a folder, one after the other, and keeps none: what reading them costs Python, without a thought."""
import os
import pickle
import sys

for entry in sorted(os.scandir(sys.argv[1]), key=lambda entry: entry.name):
    with open(entry.path, "rb") as file:
        pickle.load(file)
