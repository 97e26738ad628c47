"""Every form of trace from a few lines of it, as its publishers document it, and what bad ones are told."""

import gzip
import json

import pytest

from trainyard.errors import InputError
from trainyard.files.jobs import load_jobs, write_jobs
from trainyard.model.zoo import ZOO
from trainyard.trace.detect import FORMATS, detect, read_trace
from trainyard.trace.records import second_of_week

PHILLY = [
    {
        "status": "Pass", "vc": "ee9e8c", "jobid": "application_1506638472019_14199", "user": "ce2f4c",
        "submitted_time": "2017-10-07 01:11:39",
        "attempts": [
            {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23",
             "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1", "gpu2"]}, {"ip": "m48", "gpus": ["a", "b"]}]},
            {"start_time": "2017-10-07 01:13:30", "end_time": "2017-10-07 01:14:09",
             "detail": [{"ip": "m412", "gpus": ["gpu0", "gpu1"]}]},
        ],
    },
    {"status": "Killed", "vc": "a", "jobid": "b", "user": "u", "submitted_time": "2017-10-07 01:00:00",
     "attempts": []},
    {"status": "Failed", "vc": "a", "jobid": "c", "user": "u", "submitted_time": "2017-10-07 01:11:40",
     "attempts": [{"start_time": "2017-10-07 02:00:00", "end_time": None, "detail": []}]},
    {"status": "Failed", "vc": "a", "jobid": "d", "user": "u", "submitted_time": "2017-10-07 01:11:49",
     "attempts": [{"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:00:07", "detail": []}]},
]  # fmt: skip
PHILLY_VC = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.0,2,5902.0,6214e9

"""
RFOLD = """#job id,arrival time (sec),topology,shape,size,duration (sec)
0,5.0,CLOS,1,1,3613033.0
1,266563.0,CLOS,8+8,16,0.0
"""
ATTEMPTS = """,run_time,wait_time,submit_time,gpu_num
0,100,5,1509861000,1
1,7200,5,1509861100,8
2,64,0,1509868400,1
"""
HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
1425513,uzqls,vcpDC,0,1,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0
"""
VENUS = """job_id,arrival_s,service_sec,gpu_count
363167#0,10.0,172800.0,32
394948#2,651507.0,204.0,8
"""
PAI_SAMPLE = """job_id,arrival_s,service_sec,gpu_count
ali-e292c9c65d286997da9c5b26-worker#384494,16670.0,167731.0,8
ali-5d38c14aee655bcc24221011-worker#319385,24488.0,172800.0,2
"""
PAI_TASKS = """a,ps,1.0,Terminated,100.0,400.0,600.0,29.3,0.0,MISC
b,tensorflow,1.0,Failed,150.0,160.0,600.0,29.3,50.0,T4
a,worker,2.0,Terminated,110.0,390.0,400.0,29.3,50.0,T4
a,evaluator,1.0,Terminated,200.0,410.0,400.0,29.3,200.0,V100
c,tensorflow,1.0,Running,150.0,,600.0,29.3,100.0,T4
d,tensorflow,1.0,Terminated,150.0,160.0,600.0,29.3,,
"""
PAI_JOBS = """a,i1,58540f191766,Terminated,90.0,420.0
b,i2,6f9b1,Failed,95.0,160.0
"""
OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
scheduled_time
p0,12000,16384,1,1000,V100M32,LS,Running,100,300,100
p1,6000,12288,1,460,V100M16|V100M32,LS,Pending,150,250,
p2,6000,12288,0,0,,LS,Running,160,250,160
"""
SEREN = """job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,\
gpu_time
5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,\
2023-03-01 00:20:51+08:00,117,32,936.0
5778433,u5907,1,8,128,Other,CANCELLED,2023-03-01 00:18:23+08:00,,,0,32,0
"""
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,"
    "end_time,fail_time,stop_time,duration,queue,gpu_time\n"
    "dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,"
    "2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0\n"
)
TIRESIAS = """job_id,num_gpu,submit_time,iterations,model_name,duration,interval
0,1,0,606,vgg19,164,30
1,8,30,133,vgg11,147,23
"""
GAVEL = (
    "ResNet-18 (batch size 128)\tpython3 main.py --data_dir=%s/cifar10 --batch_size 128\t"
    "image_classification/cifar10\t--num_steps\t1\t1000\t4\t1\t-1.000000\t0\n"
    "LM (batch size 40)\tpython main.py --cuda\tlanguage_modeling\t--steps\t1\t50\t1\t2\t-1.000000\t60\n"
    "CycleGAN\tpython3 cyclegan.py\tcyclegan\t--n_steps\t1\t4426\t1\t1\t-1.000000\t70\n"
)
SIA = """name,time,application,num_replicas,batch_size
cifar10-0,107,cifar10,6,2048
bert-1,110,bert,12,384
yolov3-2,111,yolov3,8,64
"""
THETA = """,job,user,project,state,gpu_num,cpu_num,node_num,submit_time,wait_time,run_time,wall_time,\
node_hour,new_status
0,1,7.0,3.0,0,1.0,0,1.0,1672545893.0,5.0,2305.54,3600.0,0.64,Pass
1,2,0.0,0.0,0,4.0,0,4.0,1675000000.0,6.0,3602.3,3600.0,1.0,Failed
2,3,7.0,3.0,0,1.0,0,1.0,1675000100.0,1.0,2300.64,3600.0,0.64,Killed
"""
SAMPLES = {
    "philly": json.dumps(PHILLY), "philly-vc": PHILLY_VC, "rfold": RFOLD, "philly-attempts": ATTEMPTS,
    "helios": HELIOS, "pai": PAI_SAMPLE, "openb": OPENB, "acme": SEREN, "tiresias": TIRESIAS, "gavel": GAVEL,
    "sia": SIA, "thetagpu": THETA,
}  # fmt: skip


@pytest.fixture
def put(tmp_path):
    def write(text, name="trace.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


def brief(trace):
    return [(job.job_id, job.arrival_s, job.gpus, job.duration_s) for job in trace.jobs]


def test_there_is_a_sample_of_every_format():
    assert set(SAMPLES) == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("file", ["trace.txt", "trace.gz"])
def test_every_form_is_recognised_and_gives_a_jobs_file(put, tmp_path, name, file):
    path = put(SAMPLES[name], file)
    assert detect(path) == name
    trace = read_trace(path)
    assert trace.jobs == read_trace(path, name).jobs
    assert trace.jobs[0].arrival_s == 0
    assert trace.report.read == len(trace.jobs) + sum(trace.dropped.values())
    write_jobs(tmp_path / "jobs.csv", trace.jobs)
    assert load_jobs(tmp_path / "jobs.csv", {n: e.profile for n, e in ZOO.items()}) == trace.jobs
    assert detect(tmp_path / "jobs.csv") == "jobs"


def test_philly_runs_from_the_first_start_to_the_last_end(put):
    trace = read_trace(put(json.dumps(PHILLY)))
    assert brief(trace) == [("application_1506638472019_14199", 0, 5, 120)]
    assert (trace.jobs[0].tenant, trace.jobs[0].status) == ("ee9e8c", "Pass")
    assert trace.dropped == {"never ran": 1, "still running when the log was taken": 1, "no GPUs": 1}
    assert trace.origin_s == 5 * 86400 + 3600 + 11 * 60 + 39  # a Saturday


def test_philly_vc_is_sorted_and_its_empty_last_line_is_nothing(put):
    trace = read_trace(put(PHILLY_VC))
    assert brief(trace) == [("philly-1", 0, 2, 2951), ("philly-0", 2932, 1, 66)]
    assert [job.tenant for job in trace.jobs] == ["6214e9", "11cb48"]


def test_rfold_raises_a_run_time_of_nothing_to_a_second(put):
    trace = read_trace(put(RFOLD))
    assert brief(trace) == [("0", 0, 1, 3613033), ("1", 266558, 16, 1)]
    assert sum(trace.report.changed.values()) == 1
    assert trace.origin_s is None


def test_four_columns_may_have_spaces_and_whole_numbers_with_a_point(put):
    trace = read_trace(put("job_id,arrival_s,service_sec,gpu_count\n a , 5.0 , 10 , 8.0 \nb,6,1e1, 2\n"))
    assert brief(trace) == [("a", 0, 8, 10), ("b", 1, 2, 10)]


def test_attempts_lose_the_hour_of_summer_time(put):
    trace = read_trace(put(ATTEMPTS))
    assert brief(trace) == [("attempt-0", 0, 1, 100), ("attempt-1", 100, 8, 3600), ("attempt-2", 3800, 1, 64)]


def test_helios_original_and_short_form(put):
    trace = read_trace(put(HELIOS))
    assert brief(trace) == [("1425511", 0, 1, 36848), ("1425512", 26, 4, 249)]
    assert (trace.jobs[1].tenant, trace.jobs[1].status) == ("vchbv", "FAILED")
    assert trace.dropped == {"no GPUs": 1}
    short = read_trace(put(VENUS))
    assert short.format == "helios"
    assert brief(short) == [("363167#0", 0, 32, 172800), ("394948#2", 651497, 8, 204)]
    assert sum(short.report.changed.values()) == 1


def test_pai_joins_the_tasks_of_a_job(put, tmp_path):
    tasks = put(PAI_TASKS, "pai_task_table.csv")
    alone = read_trace(tasks)
    assert alone.format == "pai"
    assert brief(alone) == [("a", 0, 4, 300), ("b", 40, 1, 10)]
    jobs = put(PAI_JOBS, "pai_job_table.csv")
    for path in (tasks, jobs):
        both = read_trace(path)
        assert brief(both) == [("a", 0, 4, 300), ("b", 5, 1, 10)]
        assert both.jobs[0].tenant == "58540f191766"
        assert both.dropped == {"no start or no end": 1, "no GPUs": 1}
    assert both.origin_s == second_of_week(90 + 8 * 3600)


def test_pai_job_table_alone_is_not_enough(put):
    with pytest.raises(InputError, match="says nothing of GPUs"):
        read_trace(put(PAI_JOBS, "pai_job_table.csv"))


def test_openb_takes_whole_gpus_and_only_a_type_without_choice(put):
    trace = read_trace(put(OPENB))
    assert brief(trace) == [("p0", 0, 1, 200), ("p1", 50, 1, 100)]
    assert [(j.gpu_type, j.cpus, j.memory_gb, j.status) for j in trace.jobs] == [
        ("V100M32", 12, 16, "Running"),
        ("", 6, 12, "Pending"),
    ]
    assert trace.dropped == {"no GPUs": 1}


def test_acme_runs_from_start_to_end_in_both_clusters(put):
    seren, kalos = read_trace(put(SEREN)), read_trace(put(KALOS))
    assert brief(seren) == [("5778432", 0, 8, 117)]
    assert seren.dropped == {"no start or no end": 1}
    assert brief(kalos) == [("dlctk696s0jbvitv", 0, 64, 8)]
    assert kalos.report.changed == {"time in the queue taken out of the run time": 1}


def test_tiresias(put):
    assert brief(read_trace(put(TIRESIAS))) == [("0", 0, 1, 164), ("1", 30, 8, 147)]


def test_gavel_gives_samples_where_the_zoo_has_the_model(put):
    resnet, lm, gan = read_trace(put(GAVEL)).jobs
    assert (resnet.model, resnet.samples, resnet.gpus) == ("resnet18", round(1000 * 128 * 0.56 / 1.82), 4)
    assert (lm.model, lm.samples, lm.weight) == ("lstm", 2000, 2)
    assert gan.duration_s == pytest.approx(1000)
    assert gan.model == ""


def test_sia_gives_elastic_jobs_with_the_work_of_the_application(put):
    cifar, bert, yolo = read_trace(put(SIA)).jobs
    assert (cifar.samples, cifar.min_gpus, cifar.max_gpus, cifar.elastic) == (1538462, 1, 64, True)
    assert (bert.model, bert.samples) == ("bert-base", 177282)
    assert (yolo.model, yolo.arrival_s) == ("resnet50", 4)


def test_thetagpu_leaves_out_the_year_before(put):
    trace = read_trace(put(THETA))
    assert brief(trace) == [("2", 0, 4, 3602.3), ("3", 100, 1, 2300.64)]
    assert trace.dropped == {"submitted before the year of the log": 1}


def test_ids_that_come_twice_are_made_unique(put):
    text = RFOLD.replace("1,266563", "0,266563") + "0,266564.0,CLOS,1,1,5.0\n"
    assert [job.job_id for job in read_trace(put(text)).jobs] == ["0", "0~2", "0~3"]


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        (PHILLY_VC.replace("66.0,1", "66.0,one"), 2, "num_gpus"),
        (PHILLY_VC.replace("2017-10-09 06", "2017-13-09 06"), 3, "timestamp"),
        (RFOLD.replace("3613033.0", "nan"), 2, "duration (sec)"),
        (RFOLD.replace("8+8,16", "8+8,1.5"), 3, "size"),
        (HELIOS.replace("36848", ""), 2, "duration"),
        (VENUS.replace("204.0", "inf"), 3, "service_sec"),
        (GAVEL.replace("LM (batch", "GPT (batch"), 2, "job_type"),
        (SIA.replace(",bert,", ",birt,"), 3, "application"),
        (PAI_TASKS.replace("b,tensorflow,1.0", "b,tensorflow,x"), 2, "inst_num"),
    ],
)
def test_a_bad_cell_is_named(put, text, line, field):
    path = put(text)
    with pytest.raises(InputError) as wrong:
        read_trace(path)
    assert f"{path}, line {line}, field {field}: " in str(wrong.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a,b,c\n1,2,3\n", "--format"),
        ("", "empty"),
        ("[1, 2]", "not a JSON object"),
        ("[{}]", "is missing"),
        ("[{", "not valid JSON"),
        (json.dumps(PHILLY).replace("2017-10-07 01:11:39", "yesterday"), "is not a time"),
        (json.dumps(PHILLY[1:3]), "no job with a GPU"),
        (PHILLY_VC + "1,2\n", "every row must have 5"),
        (GAVEL + "x\ty\n", "every row must have 10"),
    ],
)
def test_a_bad_file_is_explained(put, text, what):
    with pytest.raises(InputError, match=what):
        read_trace(put(text))


def test_a_wrong_format_is_an_error(put):
    with pytest.raises(InputError, match="did you mean 'helios'"):
        read_trace(put(HELIOS), "helio")
    with pytest.raises(InputError, match="column 'timestamp' is missing"):
        read_trace(put(HELIOS), "philly-vc")
