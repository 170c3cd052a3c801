-- The part of a Thread's first message from which a title is derived (libs/domain/title.ts). Uses the index of the transcript.
-- Skips leading white space as `trimStart` of JavaScript defines it.
select left(ltrim(data ->> 'text', E' \t\n\x0b\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'), 32768) as text
from events
where thread_id = $1 and type = 'message.added'
order by version
limit 1
