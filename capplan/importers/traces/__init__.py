"""Histories of requests in the formats that people have; one format a file.

Text is read with the standard library and numpy in blocks of rows: as fast as pyarrow and polars
were on a million rows of the Azure trace (docs/forecasts.md), and every bad row has its line.
pyarrow is needed for Parquet alone.
"""
