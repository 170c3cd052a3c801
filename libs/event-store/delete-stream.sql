-- Events and state row of a Thread whose stream is locked go, by the one function that may delete events (docs/adr/0027).
select delete_stream($1, $2)
