"""Speeds of the DL2 paper's eight kinds of jobs, as its authors measured them on their testbed.

Samples/s of the whole job, to three digits, at odd numbers of workers (columns) and servers (rows): every
second measurement of those that the public DL2 simulator carries (config_speed.txt). Two of vgg-16 and one of
inception-bn failed there, and none has fifteen servers with eleven workers. What matters most: with a small
batch, further workers hurt and servers help.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

WORKERS = (1, 3, 5, 7, 9, 11)
SERVERS = (1, 3, 5, 7, 9, 11, 13, 15)
MISSING = "-"

_MEASURED = {
    "resnet-50": """
         15.8  13.9  10.9  8.99   7.3  6.84
         46.7  35.1  28.8  25.5  21.1  20.1
         47.3  46.6  38.6  32.3  31.3  28.2
         49.3  37.1  30.7  29.4  24.7  21.4
         53.1  46.2  44.6    36  31.4  28.3
         50.2  54.3  47.6  39.6  39.6  35.2
           59  57.6  47.9  45.2  38.9  36.6
         61.4  55.5  54.8  47.3  41.4     -
    """,
    "vgg-16": """
         9.55  7.39  5.66  5.09  4.13  0.48
         17.5  13.4  11.5   9.6  8.08  6.53
         17.8  18.6  15.1  12.1    11  7.08
         24.4  19.8  16.3  13.2  9.87  8.69
         25.8  20.7  18.7  14.1  12.2     -
         22.2  22.6  19.5  16.6  12.8  11.1
         28.4  23.9    21     -  12.6  11.2
         26.9  24.6  20.8  13.8  11.9     -
    """,
    "resnext-110": """
          383   204   151   111  96.5  83.8
          484   400   270   224   196   159
          507   478   389   312   247   210
          438   396   289   269   234   217
          457   406   321   279   255   222
          501   424   349   302   277   255
          433   433   387   333   298   275
          447   463   414   355   327     -
    """,
    "inception-bn": """
          170   135     -    79  65.5  57.3
          216   268   216   185   152   137
          213   305   268   233   196   173
          210   263   239   209   197   169
          209   293   273   232   214   185
          207   301   285   254   229   209
          207   289   295   266   247   221
          201   295   311   288   260     -
    """,
    "seq2seq": """
          277   251   235   201   172   152
          378   383   329   268   218   196
          486   530   466   430   334   269
          408   513   466   373   334   299
          449   488   450   349   269   253
          529   556   471   400   299   266
          454   516   484   352   294   263
          481   520   437   310   252     -
    """,
    "cnn-text-classification": """
         61.9    75  72.9  69.3  62.8  59.9
         68.6  90.7  97.8  86.3  82.3  74.8
         71.9  93.2   100  93.2  86.1  83.7
         64.3  93.8  98.3  95.9  89.5  86.5
         67.3  95.5  96.7  94.6  86.3  84.7
         70.4  97.6  99.3  93.4    91  86.2
         65.9  91.1  99.5  96.1  90.3  86.3
           70    97  97.4  93.5  90.4     -
    """,
    "dssm": """
          462   991  1190  1090  1030  1030
          437   986  1160  1100  1040  1030
          506   994  1130  1020  1030  1020
          476   993  1190  1090  1070  1040
          464  1020  1130  1080  1040  1010
          493   961  1130  1020  1020  1030
          491   998  1150  1090  1050  1040
          448   911  1180  1100  1070     -
    """,
    "wlm": """
          162   144   106  88.6  90.4  82.3
          310   268   238   171   166   147
          498   361   290   264   219   182
          422   383   323   262   228   207
          407   391   333   251   209   202
          466   400   341   294   233   204
          427   403   358   248   219   205
          401   390   370   249   224     -
    """,
}


def _points(table: str) -> tuple[tuple[float, float, float], ...]:
    """Workers, servers and speed of what was measured."""
    lines = [line.split() for line in table.strip().splitlines()]
    return tuple(
        (float(w), float(p), float(speed))
        for p, line in zip(SERVERS, lines, strict=True)
        for w, speed in zip(WORKERS, line, strict=True)
        if speed != MISSING
    )


SPEEDS: Mapping[str, tuple[tuple[float, float, float], ...]] = MappingProxyType(
    {model: _points(table) for model, table in _MEASURED.items()}
)
