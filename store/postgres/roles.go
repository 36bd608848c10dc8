package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Two database roles are used. The owner of the tables creates and migrates the tables. The bot's role only reads and
// writes rows. The bot's role can append to the audit history, but can't change existing records: see docs/postgres.md,
// "Roles and grants".

// allowed holds the rights that the bot's role needs on a table. The role should have no other rights.
type allowed struct {
	rights  []string // on all columns
	inserts []string // the columns on which the role has INSERT, if rights does not have INSERT
}

// restricted lists the tables on which the bot's role has fewer rights than SELECT, INSERT, UPDATE and DELETE.
var restricted = map[string]allowed{
	"audit_records":  {rights: []string{"SELECT", "INSERT"}},
	"audit_payloads": {rights: []string{"SELECT", "INSERT"}},
	"audit_journal":  {rights: []string{"SELECT"}, inserts: []string{"chain", "seq", "sum"}},
	"audit_heads":    {rights: []string{"SELECT"}},
	versionTable:     {rights: []string{"SELECT"}},
}

func allowedOn(table string) allowed {
	if a, ok := restricted[table]; ok {
		return a
	}
	return allowed{rights: []string{"SELECT", "INSERT", "UPDATE", "DELETE"}}
}

// Rights compares the rights of a role in a database with the rights that the bot needs.
type Rights struct {
	role, at string
	owner    string   // why the role has all rights: it is a superuser, or owns the tables; empty: the role does not have all rights
	blind    bool     // the role can't read the version of the tables
	missing  []string // the statements that grant the missing rights
	excess   []string // the statements that revoke the unnecessary rights
}

// Missing returns an error that lists the missing grants. If no grant is missing, Missing returns nil.
func (r Rights) Missing() error {
	if len(r.missing) == 0 {
		return nil
	}
	return fmt.Errorf(`%w: the role %s lacks rights in %s. As the owner of the tables, run: %s (docs/postgres.md, "Roles and grants")`, ErrAccess, r.role, r.at, strings.Join(r.missing, " "))
}

// Excess returns a text about the rights that the role has and the bot does not need. If the role has no unnecessary
// rights, the text is empty.
func (r Rights) Excess() string {
	switch {
	case r.owner != "":
		return fmt.Sprintf("the role %s %s in %s, so anybody with its password can change or delete the history", r.role, r.owner, r.at)
	case len(r.excess) > 0:
		return fmt.Sprintf("the role %s may do more than it needs in %s", r.role, r.at)
	}
	return ""
}

// Remedy returns a text that says how to revoke the rights that Excess names.
func (r Rights) Remedy() string {
	if r.owner != "" {
		return `give the bot a role of its own: docs/postgres.md, "Roles and grants"`
	}
	return "as the owner of the tables, run: " + strings.Join(r.excess, " ")
}

// Rights compares the rights of the store's role with the rights that the bot needs. Open has read the rights of the
// role.
func (s *Store) Rights() Rights { return s.rights }

// ReadRights compares the rights of the role in the address with the rights that the bot needs.
func ReadRights(ctx context.Context, url string) (Rights, error) {
	c, err := parse(url)
	if err != nil {
		return Rights{}, err
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return Rights{}, err
	}
	defer hangUp(conn)
	found, err := c.look(ctx, conn)
	return found.rights, err
}

// identifier returns a name as SQL, with quotes only if they are necessary.
func identifier(name string) string {
	if schemaName.MatchString(name) {
		return name
	}
	return pgx.Identifier{name}.Sanitize()
}

var created = regexp.MustCompile(`(?m)^CREATE (?:TABLE|FUNCTION) (\w+)[ (]`)

// known returns the names of the tables and functions that this program's migrations make. The database may have
// further tables and functions of a newer program.
func (c *config) known() ([]string, error) {
	list, err := c.steps(0)
	names := []string{versionTable}
	for _, s := range list {
		for _, found := range created.FindAllStringSubmatch(s.text, -1) {
			names = append(names, found[1])
		}
	}
	return names, err
}

// readRights reads the rights of the connection's role on the tables of the schema. Any role can read its rights.
func (c *config) readRights(ctx context.Context, conn *pgx.Conn) (r Rights, err error) {
	r.at = c.name()
	known, err := c.known()
	if err != nil {
		return r, err
	}
	var role string
	var superuser, owner, usage, create bool
	err = conn.QueryRow(ctx, `
SELECT current_user, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
       EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relkind IN ('r', 'p', 'v', 'S') AND pg_has_role(relowner, 'MEMBER')),
       has_schema_privilege(n.oid, 'USAGE'), has_schema_privilege(n.oid, 'CREATE')
FROM pg_namespace n WHERE n.nspname = $1`, c.schema).Scan(&role, &superuser, &owner, &usage, &create)
	if err != nil {
		return r, c.sentence(err)
	}
	r.role = identifier(role)
	switch {
	case superuser:
		r.owner = "is a superuser"
	case owner:
		r.owner = "owns the tables"
	}
	if r.blind = !usage; r.blind {
		r.missing = append(r.missing, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;", c.inSQL(), r.role))
	}
	if create {
		r.excess = append(r.excess, fmt.Sprintf("REVOKE CREATE ON SCHEMA %s FROM %s;", c.inSQL(), r.role))
	}
	// A role may have a right on only some columns of a table.
	const tables = `
SELECT c.relname::text,
       ARRAY(SELECT p FROM unnest($2::text[]) p WHERE has_table_privilege(c.oid, p)),
       ARRAY(SELECT p FROM unnest($3::text[]) p WHERE has_any_column_privilege(c.oid, p)),
       ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND has_column_privilege(c.oid, attnum, 'INSERT') ORDER BY attnum)
FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p') AND c.relname = ANY($4) ORDER BY 1`
	found, err := conn.Query(ctx, tables, c.schema, []string{"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "TRIGGER"}, []string{"SELECT", "INSERT", "UPDATE"}, known)
	if err != nil {
		return r, c.sentence(err)
	}
	var grants, revokes, again statements
	var table string
	var whole, part, inserts []string
	_, err = pgx.ForEachRow(found, []any{&table, &whole, &part, &inserts}, func() error {
		r.blind = r.blind || table == versionTable && !slices.Contains(whole, "SELECT")
		a, name := allowedOn(table), c.inSQL()+"."+identifier(table)
		missing, excess := a.compare(whole, part, inserts)
		grants.add(missing, name)
		revokes.add(excess, name)
		if slices.Contains(excess, "INSERT") && a.inserts != nil { // REVOKE also removes the role's rights on columns
			again.add([]string{a.insert()}, name)
		}
		return nil
	})
	if err != nil {
		return r, c.sentence(err)
	}
	r.missing = append(r.missing, grants.text("GRANT %s ON %s TO "+r.role+";")...)
	r.excess = append(r.excess, revokes.text("REVOKE %s ON %s FROM "+r.role+";")...)
	r.excess = append(r.excess, again.text("GRANT %s ON %s TO "+r.role+";")...)
	var closed bool // a function that the role may not call
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_proc WHERE pronamespace = $1::regnamespace AND proname = ANY($2) AND NOT has_function_privilege(oid, 'EXECUTE'))", c.schema, known).Scan(&closed)
	if err != nil {
		return r, c.sentence(err)
	}
	if closed {
		r.missing = append(r.missing, fmt.Sprintf("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %s TO %s;", c.inSQL(), r.role))
	}
	return r, nil
}

// compare returns the missing rights on a table, and the unnecessary rights. The parameter whole lists the role's
// rights on all columns, and the parameter part lists the role's rights on some columns. The parameter inserts lists
// the columns on which the role has INSERT.
func (a allowed) compare(whole, part, inserts []string) (missing, excess []string) {
	for _, right := range a.rights {
		if !slices.Contains(whole, right) {
			missing = append(missing, right)
		}
	}
	if a.inserts != nil && slices.ContainsFunc(a.inserts, func(c string) bool { return !slices.Contains(inserts, c) }) {
		missing = append(missing, a.insert())
	}
	for _, right := range slices.Compact(slices.Sorted(slices.Values(append(whole, part...)))) {
		columns := right == "INSERT" && !slices.ContainsFunc(inserts, func(c string) bool { return !slices.Contains(a.inserts, c) })
		if !columns && !slices.Contains(a.rights, right) {
			excess = append(excess, right)
		}
	}
	return missing, excess
}

// insert returns the SQL of the right INSERT on some columns.
func (a allowed) insert() string { return "INSERT (" + strings.Join(a.inserts, ", ") + ")" }

// statements maps each list of rights to the tables for which it was added. The lists of rights keep the order in which
// they were added.
type statements struct {
	rights []string
	tables map[string][]string
}

func (s *statements) add(rights []string, table string) {
	list := strings.Join(rights, ", ")
	if list == "" {
		return
	}
	if s.tables == nil {
		s.tables = map[string][]string{}
	}
	if s.tables[list] == nil {
		s.rights = append(s.rights, list)
	}
	s.tables[list] = append(s.tables[list], table)
}

// text returns one statement for each list of rights.
func (s *statements) text(format string) (out []string) {
	for _, list := range s.rights {
		out = append(out, fmt.Sprintf(format, list, strings.Join(s.tables[list], ", ")))
	}
	return out
}
