/*
The protocol of replica.go, for one claim: leases, takeovers, and the fence in every transaction. Spin tries every order
in which the replicas and their clocks can take their steps. model_test.go runs it, and compares the names of the steps.

Simplifications: a transaction of the database is one step, or two if others can commit in between (its snapshot, and
its COMMIT). Time does nothing but end leases: a lease ends by the replica's own clock before it ends in the database. A
replica that is stopped, slow or cut off takes no steps for a while. It can be late with everything, but the context of
its work counts as ended when its lease is over, although the replica notices that only when it continues.

Broken variants, each of which must fail: NOFENCE (transactions do not check the claim), EAGER (others do not wait for
the lease to pass), RUDE (a claim is given up while work goes on).
*/

#ifndef REPLICAS
#define REPLICAS 3
#endif
#define NOBODY   REPLICAS
#ifndef OWNERS
#define OWNERS 2 /* how often the claim gets an owner, at most */
#endif

/* The database. */
byte owner = NOBODY;   /* claims.owner */
byte epoch = 0;        /* claims.epoch */
bool listed[REPLICAS]; /* there is a row in replicas */
bool alive[REPLICAS];  /* alive_until has not passed */
byte seen = 0;         /* the newest epoch under which the run was read */

/* The run of a tool, in the database. */
mtype = { none, executing, succeeded, unknown };
mtype state = none;
byte runner = 0;  /* the epoch that the run belongs to */
byte version = 0;

/* The replicas. */
bool held[REPLICAS];    /* the replica believes that it has the claim */
byte since[REPLICAS];   /* with this epoch */
bool leased[REPLICAS];  /* its own clock is within the lease */
bool working[REPLICAS]; /* it works under the claim, and the context has not ended */

/* Outside. */
byte acts = 0; /* how often the tool has acted */

/* lose: the replica forgets the claim, and the contexts of its work end. */
inline lose(i) {
	held[i] = false;
	since[i] = 0;
	working[i] = false
}

/* enlist: the replica adds itself, with a new id. */
inline enlist(i) {
	d_step {
		!listed[i] ->
		listed[i] = true;
		alive[i] = true;
		leased[i] = false;
		lose(i)
	}
}

/* take: dead replicas are removed, and a claim without an owner gets one. */
inline take(i) {
	d_step {
		listed[i] && !held[i] && epoch < OWNERS && (owner == NOBODY || (owner != i && !alive[owner])) ->
		if
		:: owner != NOBODY -> listed[owner] = false
		:: else
		fi;
		owner = i;
		epoch++
	}
}

#ifdef RUDE
#define may_give_up true
#else
#define may_give_up !working[i]
#endif

/* The heartbeat of a replica, with what follows from it. */
proctype keep(byte i) {
	bool own;   /* what the heartbeat showed */
	byte shown;
end:
	do
	:: enlist(i)
	:: atomic { /* beat */
		listed[i] ->
		alive[i] = true;
		own = (owner == i);
		shown = epoch
	   };
	   atomic { /* adopt: the answer has arrived, perhaps too late */
		leased[i] = alive[i];
		if
		:: own && held[i] && since[i] == shown
		:: own && !(held[i] && since[i] == shown) -> lose(i); held[i] = true; since[i] = shown
		:: !own -> lose(i)
		fi;
		own = false;
		shown = 0
	   }
	:: take(i)
	:: atomic { /* excess: the replica forgets a claim without work */
		held[i] && may_give_up -> held[i] = false
	   };
	   atomic { /* giveUp */
		if
		:: owner == i && epoch == since[i] -> owner = NOBODY
		:: else
		fi;
		since[i] = 0
	   }
	od
}

#ifdef EAGER
#define may_pass true
#else
#define may_pass !leased[i]
#endif

/* Time. */
proctype clock(byte i) {
end:
	do
	:: d_step { leased[i] -> leased[i] = false; working[i] = false } /* expire: the replica's own clock */
	:: d_step { alive[i] && may_pass -> alive[i] = false } /* the clock of the database */
	od
}

/* check_claim: what a transaction under a claim reads first. */
#ifdef NOFENCE
#define has_claim true
#else
#define has_claim (owner == i && epoch == under)
#endif

/* snapshot: a transaction begins, and reads the claim and the run. */
#define snapshot \
	ok = (owner == i && epoch == under); \
	read = version; \
	was = state; \
	by = runner; \
	seen = (under > seen -> under : seen)

/*
commit: PostgreSQL refuses a transaction if the run has changed since its snapshot. It also refuses a transaction whose
claim was taken over after the snapshot, if a later owner has read the run: no order of the two transactions explains
both results. A transaction that is committed nevertheless was right at its snapshot, and no later owner has read the
run since.
*/
#ifdef NOFENCE
#define refused (version != read)
#else
#define refused (version != read || (epoch > under && seen > under))
#endif
#define fits (ok && (epoch == under || seen <= under))

/* The handler of the run: it may be late with everything that it does. */
proctype handler(byte i) {
	byte under; /* the epoch of its claim */
	bool ok;
	byte read, by;
	mtype was;
end:
	do
	:: atomic { /* Enter */
		held[i] && leased[i] && !working[i] ->
		assert(!working[(i + 1) % REPLICAS]);
		assert(!working[(i + 2) % REPLICAS]);
		working[i] = true;
		under = since[i]
	   };
	   if
	   :: atomic { !has_claim -> lose(i) } /* ErrFenced */
	   :: atomic { has_claim -> snapshot };
		if
		:: atomic { was == none && !refused -> /* Claim */
			assert(fits);
			state = executing;
			runner = under;
			version++
		   };
		   atomic { /* the tool */
			acts++;
			assert(acts <= 1)
		   };
		   if
		   :: atomic { !has_claim -> if :: held[i] && since[i] == under -> lose(i) :: else fi }
		   :: atomic { has_claim -> snapshot };
			if
			:: atomic { was == executing && !refused -> /* Finish */
				assert(fits);
				assert(by == under);
				state = succeeded;
				version++
			   }
			:: atomic { (was != executing || refused) -> skip }
			fi
		   fi
		:: atomic { was == executing && by != under && !refused -> /* Recover, markUnknown */
			assert(fits);
			state = unknown;
			version++
		   }
		:: atomic { (refused || was == succeeded || was == unknown || (was == executing && by == under)) -> skip }
		fi
	   fi;
	   atomic { /* leave */
		if
		:: held[i] && since[i] == under -> working[i] = false
		:: else
		fi;
		under = 0; ok = false; read = 0; by = 0; was = 0
	   }
	od
}

init {
	atomic {
		byte i = 0;
		do
		:: i < REPLICAS -> run keep(i); run clock(i); run handler(i); i++
		:: else -> break
		od
	}
}
