import sys,pytest
from tests.postgres_histories.judge import judge
from tests.postgres_histories.generate import case_of
from tests.histories.log import Log
from tests.histories.place import lake_folder
log=Log()
with pytest.MonkeyPatch.context() as patch, lake_folder() as lake:
    log.install(patch)
    for seed in map(int,sys.argv[2:]):
        f=judge(case_of(seed),log,lake,float(sys.argv[1]))
        print(seed,f.cases); 
        for t in f.failures.values(): print(t)
