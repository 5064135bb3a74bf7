import { useState } from "preact/hooks";
import type { NewToken } from "../../api/types/settings";
import { Banner } from "../../components/Banner";
import { Button } from "../../components/Button";
import { copyText } from "../../components/copy";
import { Dialog } from "../../components/Dialog";
import { Text } from "../../text/Text";

/** The one time that a token can be read. A slip must not lose it, so it is left only after it was copied, or on purpose. */
export function ShownOnce({ made, onClose }: { made: NewToken; onClose: () => void }) {
  const [isCopied, setCopied] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const copy = async () => {
    if (await copyText(made.token, "The token")) setCopied(true);
  };
  const leave = () => (isCopied || isAsking ? onClose() : setAsking(true));
  return (
    <Dialog
      title={`The token ${made.info.name}`}
      onClose={leave}
      actions={
        <>
          <Button onClick={leave}>{isAsking && !isCopied ? "Close all the same" : "Close"}</Button>
          <Button kind="prime" icon={isCopied ? "tick" : "copy"} onClick={() => void copy()} autoFocus>
            Copy the token
          </Button>
        </>
      }
    >
      <div class="in">
        {isAsking && !isCopied && <Banner tone="heal">It has not been copied, and it is not shown again.</Banner>}
        <p>
          It is shown this once; only a hash of it is kept. Whoever has it acts as <Text>{made.info.name}</Text>, {made.info.role}.
        </p>
        <pre class="token-text" tabIndex={0} aria-label="The token">
          {made.token}
        </pre>
        <p class="small dim">
          People sign in with it. Programs send it as the header <code>Authorization: Bearer TOKEN</code>.
        </p>
      </div>
    </Dialog>
  );
}
