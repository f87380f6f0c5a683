"""Any order of calls: the file store does what the model does, over restarts too."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis.stateful import run_state_machine_as_test

from agent_memory.stores import ConversationStore
from agent_memory.stores.file import FileConversationStore
from tests.stores.test_file_contract import ForgetfulStore
from tests.stores.test_state_machine import ANY_ORDER, StoreMachine


class FileMachine(StoreMachine):
    store_class = FileConversationStore

    def make_store(self) -> ConversationStore:
        self.folder = tempfile.TemporaryDirectory()
        return self.store_class(folder=self.folder.name, fsync=False)

    def teardown(self) -> None:
        self.folder.cleanup()


class ForgetfulMachine(FileMachine):
    store_class = ForgetfulStore


@pytest.mark.heavy
@pytest.mark.parametrize("machine", [FileMachine, ForgetfulMachine])
def test_a_store_does_in_any_order_what_the_model_does(machine):
    run_state_machine_as_test(machine, settings=ANY_ORDER)
