-- Deletes the events and the state row of a Thread whose stream is locked. No other function deletes events (docs/adr/0027).
select delete_stream($1, $2)
