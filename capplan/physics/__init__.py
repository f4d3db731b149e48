"""Pure equations, one idea a file: numbers in, numbers out."""
