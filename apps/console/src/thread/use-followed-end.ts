import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';

/** So near to the end one is at the end. Pixels. */
const NEAR = 40;

/**
 * Keeps a box at its end while what it shows grows, unless the reader has scrolled up. `first` tells what it begins with: who
 * stands at its start still sees the same when more comes before it (elsewhere browsers see to that).
 */
export function useFollowedEnd(box: RefObject<HTMLDivElement | null>, shown: unknown, first: string | undefined) {
  const [isAtEnd, setAtEnd] = useState(true);
  const isFollowing = useRef(true);
  const was = useRef<{ first: string | undefined; top: number; fromEnd: number }>({ first, top: 0, fromEnd: 0 });

  const goToEnd = useCallback(() => {
    isFollowing.current = true;
    setAtEnd(true);
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [box]);

  const onScroll = useCallback(() => {
    if (!box.current) return;
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    isFollowing.current = scrollHeight - scrollTop - clientHeight < NEAR;
    setAtEnd(isFollowing.current);
    Object.assign(was.current, { top: scrollTop, fromEnd: scrollHeight - scrollTop });
  }, [box]);

  useLayoutEffect(() => {
    if (!box.current) return;
    const { top, fromEnd } = was.current;
    if (isFollowing.current) box.current.scrollTop = box.current.scrollHeight;
    else if (first !== was.current.first && top < NEAR) box.current.scrollTop = box.current.scrollHeight - fromEnd;
    const { scrollHeight, scrollTop } = box.current;
    was.current = { first, top: scrollTop, fromEnd: scrollHeight - scrollTop };
  }, [box, shown, first]);

  // A window that becomes smaller must not look as if the reader had scrolled.
  useEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(() => isFollowing.current && goToEnd());
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [box, goToEnd]);

  return { isAtEnd, onScroll, goToEnd };
}
