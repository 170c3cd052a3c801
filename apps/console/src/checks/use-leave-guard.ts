import { useEffect } from 'react';
import { useConfirm, type Question } from '../components/confirm.tsx';

/** While there is a question, whoever follows a link of the page is asked it first; who closes the tab, by the browser. */
export function useLeaveGuard(question: Question | null): void {
  const confirm = useConfirm();
  useEffect(() => {
    if (question === null) return;
    let agreed = false;
    const onClick = (event: MouseEvent): void => {
      const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href]') : null;
      const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || link?.target === '_blank';
      if (agreed || link === null || isElsewhere) return;
      event.preventDefault();
      event.stopPropagation();
      void confirm(question).then((leave) => {
        if (!leave) return;
        agreed = true;
        link.click();
      });
    };
    const onUnload = (event: BeforeUnloadEvent): void => {
      // A link may lead out of the console: who has agreed is not asked again.
      if (!agreed) event.preventDefault();
    };
    // Before the router, which listens further down.
    document.addEventListener('click', onClick, { capture: true });
    window.addEventListener('beforeunload', onUnload);
    return () => {
      document.removeEventListener('click', onClick, { capture: true });
      window.removeEventListener('beforeunload', onUnload);
    };
  }, [question, confirm]);
}
