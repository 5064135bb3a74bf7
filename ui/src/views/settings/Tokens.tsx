import { useState } from "preact/hooks";
import { del } from "../../api/client";
import { textOfError } from "../../api/errors";
import { useResource } from "../../api/resource";
import type { NewToken, TokenInfo } from "../../api/types/settings";
import { Banner } from "../../components/Banner";
import { Button, reasonOff } from "../../components/Button";
import { Card } from "../../components/Card";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { EmptyState } from "../../components/EmptyState";
import { Note } from "../../components/marks";
import { type Column, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { toast } from "../../components/toasts";
import { plural } from "../../format/numbers";
import { toMillis } from "../../format/times";
import { useActions } from "../../state/page";
import { nowFor } from "../../state/clock";
import { reasonAgainst, session } from "../../state/session";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { NewTokenDialog } from "./NewTokenDialog";
import { ShownOnce } from "./ShownOnce";

/** Who may call the API and sign in. */
export function Tokens() {
  const reason = reasonAgainst("admin");
  return reason ? <Refused reason={reason} /> : <TokenList />;
}

const CREATE = "Create a token…";

function Refused({ reason }: { reason: string }) {
  useActions([{ label: CREATE, run: () => undefined, off: reason }]);
  return <Banner>Tokens let people and programs in. {reason}</Banner>;
}

function namespacesOf(token: TokenInfo): string {
  return token.namespaces.includes("*") ? "all" : token.namespaces.join(", ");
}

function Expiry({ at }: { at: string | null }) {
  if (at === null) return <span class="mid">never</span>;
  const moment = toMillis(at);
  if (moment <= nowFor(moment)) return <Note tone="bad">expired</Note>;
  return <TimeAgo at={at} />;
}

function columnsFor(onRevoke: (token: TokenInfo) => void): readonly Column<TokenInfo>[] {
  return [
    { id: "name", label: "Name", cut: true, phone: 1, title: (row) => plainText(row.name), cell: (row) => <><span class="strong"><Text>{row.name}</Text></span> <span class="mono dim"><Text>{row.id}</Text></span></> },
    { id: "role", label: "Role", width: "104px", phone: 3, cell: (row) => row.role },
    { id: "namespaces", label: "Namespaces", width: "16%", cut: true, class: "mid", title: (row) => plainText(namespacesOf(row)), cell: (row) => <Text>{namespacesOf(row)}</Text> },
    { id: "made", label: "Made", width: "22%", cut: true, class: "mid", title: (row) => plainText(`by ${row.made_by}`), cell: (row) => <><TimeAgo at={row.made_at} /> by <Text>{row.made_by}</Text></> },
    { id: "used", label: "Last used", width: "128px", class: "mid", cell: (row) => (row.used_at ? <TimeAgo at={row.used_at} /> : <span class="dim">never</span>) },
    { id: "expires", label: "Expires", width: "180px", phone: 4, cell: (row) => <Expiry at={row.expires_at} /> },
    { id: "revoke", label: "Action", width: "96px", phone: 2, num: true, cell: (row) => <Button small kind="quiet" danger label={`Revoke ${plainText(row.name)}…`} needs="admin" onClick={() => onRevoke(row)}>Revoke…</Button> },
  ];
}

function TokenList() {
  const tokens = useResource<TokenInfo[]>(() => "tokens");
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<NewToken | null>(null);
  const [revoked, setRevoked] = useState<TokenInfo | null>(null);
  useActions([{ label: CREATE, run: () => setMaking(true), off: reasonOff("admin", null) }]);
  const rows = [...(tokens.data.value ?? [])].sort((one, other) => one.name.localeCompare(other.name) || one.made_at.localeCompare(other.made_at));
  const create = (
    <Button kind="prime" needs="admin" onClick={() => setMaking(true)}>
      {CREATE}
    </Button>
  );
  return (
    <>
      <div class="sumline tokens-head">
        <span>{tokens.data.value === null ? "\u00a0" : <><b>{plural(rows.length, "token")}</b> {rows.length === 1 ? "lets" : "let"} people and programs in.</>}</span>
        <span class="sp" />
        {create}
      </div>
      {session.value?.via === "loopback" && (
        <Banner>This server asks nobody on this machine who they are. With <code>--tokens</code>, or where others can reach it, a token is needed.</Banner>
      )}
      <Card of={tokens}>
        {rows.length === 0 ? (
          <EmptyState line="tickwork tokens create ines --role operator --expires 90d">No token yet. A token lets a person sign in here, and a program call the API. Create one above, or on the command line:</EmptyState>
        ) : (
          <Table label="Tokens" rows={rows} columns={columnsFor(setRevoked)} rowKey={(row) => row.id} rowClass={() => "token-row"} />
        )}
      </Card>
      {isMaking && (
        <NewTokenDialog
          onClose={() => setMaking(false)}
          onMade={(token) => {
            setMaking(false);
            setMade(token);
            void tokens.refresh();
          }}
        />
      )}
      {made && <ShownOnce made={made} onClose={() => setMade(null)} />}
      {revoked && <RevokeDialog token={revoked} onClose={() => setRevoked(null)} onDone={() => void tokens.refresh()} />}
    </>
  );
}

function RevokeDialog({ token, onClose, onDone }: { token: TokenInfo; onClose: () => void; onDone: () => void }) {
  const who = session.value;
  const mayBeOwn = who?.via === "session" && who.name === token.name;
  const revoke = async () => {
    try {
      await del(`tokens/${encodeURIComponent(token.id)}`);
      toast({ text: `The token ${token.name} is revoked.`, tone: "good" });
      onDone();
    } catch (error) {
      toast({ text: `The token ${token.name} was not revoked: ${textOfError(error)}`, tone: "bad" });
    }
  };
  return (
    <ConfirmDialog
      title="Revoke a token"
      danger
      button={() => "Revoke the token"}
      sentence={() => (
        <>
          Revoke <b><Text>{token.name}</Text></b> (<span class="mono"><Text>{token.id}</Text></span>), {token.role}. Whoever uses it is refused within five seconds, and its sessions end. This cannot be undone.
        </>
      )}
      onConfirm={() => void revoke()}
      onClose={onClose}
    >
      {mayBeOwn && <Banner tone="heal">It has your name. If you signed in with it, you are signed out.</Banner>}
    </ConfirmDialog>
  );
}
