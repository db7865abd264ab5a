+ srun --ntasks 8 ./solver -n 500
slurmd[node17]: error: *** STEP 88123.0 KILLED AT 2031-04-05T06:07:08 WITH SIGNAL 15 ***
slurmd[node18]: error: *** STEP 88123.0 KILLED AT 2031-04-05T06:07:08 WITH SIGNAL 15 ***
slurmd[node19]: error: *** STEP 88123.0 KILLED AT 2031-04-05T06:07:08 WITH SIGNAL 15 ***
slurmd[node20]: error: *** STEP 88123.0 KILLED AT 2031-04-05T06:07:08 WITH SIGNAL 15 ***
srun: error: node17: tasks 0-1: Terminated
srun: error: node18: tasks 2-3: Terminated
srun: error: node19: tasks 4-5: Terminated
srun: error: node20: tasks 6-7: Terminated
srun: Force Terminated job step 88123.0
+ exit 0
