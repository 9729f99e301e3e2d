from dia_demo.api import BatchError as BatchError
from dia_demo.api import DiaDemoError as DiaDemoError
from dia_demo.api import InputError as InputError
from dia_demo.api import Model as Model
from dia_demo.api import RunError as RunError
from dia_demo.api import Stream as Stream
from dia_demo.api import Take as Take
from dia_demo.api import load as load
