from raycosttune.advise.wording import counted, seconds, size


def test_numbers_have_units_that_suit_them() -> None:
    assert [seconds(s) for s in (2, 0.5, 0.0004)] == ["2 s", "500 ms", "400 us"]
    sizes = [size(b) for b in (12, 3e3, 4e6, 5e9, 6e12, 7e15)]
    assert sizes == ["12 B", "3 kB", "4 MB", "5 GB", "6 TB", "7e+03 TB"]


def test_one_worker_is_no_plural() -> None:
    assert [counted(1), counted(2)] == ["1 worker", "2 workers"]
