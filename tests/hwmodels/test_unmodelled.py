"""Machines that are not modelled are refused with what is missing and what helps."""

import pytest

from hwmodels.board.file import list_boards, load_board
from hwmodels.board.unmodelled import explain_unmodelled
from hwmodels.errors import BoardError
from twin.errors import RuntimeRefusedError
from twin.runtimes import list_runtimes, load_runtime

ASKED = ["Syntiant", "qualcomm-qcs6490", "SR110", "rzv2l_smarc", "MCXN947", "axon", "K210", "hifi5",
         "hsp", "C29x", "C910", "muRISCV-NN@1.0", "rvv", "rvv0.7.1", "andes-d25f", "TMS320C6748"]


@pytest.mark.parametrize("name", ASKED)
def test_a_board_or_library_that_is_not_modelled_says_what_is_missing(name):
    with pytest.raises(BoardError, match=r"not modelled: .*What helps: ") as refused:
        load_board(name)
    assert "\n" not in str(refused.value)
    with pytest.raises(RuntimeRefusedError, match="not modelled"):
        load_runtime(name)


def test_nothing_that_is_modelled_is_called_so():
    names = [*list_boards(), *(load_board(name).soc for name in list_boards()), *list_runtimes()]
    assert not [name for name in names if explain_unmodelled(name)]
    assert explain_unmodelled("nucleo_l4r6zi") == ""
