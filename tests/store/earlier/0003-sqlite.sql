-- A small database as vseg 0.1.0 left it under schema 0003, on SQLite. It stays as it is: it has to open for good.
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES('0003');
CREATE TABLE studies (
	id INTEGER NOT NULL,
	name VARCHAR(63) NOT NULL,
	text TEXT NOT NULL,
	digest VARCHAR(64) NOT NULL,
	status VARCHAR(16) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	frozen_at_ms BIGINT,
	CONSTRAINT pk_studies PRIMARY KEY (id),
	CONSTRAINT uq_studies_name UNIQUE (name)
);
INSERT INTO studies VALUES(1,'kept',replace('\nname = "kept"\nsegments = 2\nparticipants = 5\nlayout = {grid = 3}\npractice = {trials = 0}\ncatch = {per_block = 0}\n[prolific]\ncompletion_code = "THANKS42"\n[design]\nname="adaptive"\ntrials=8\n\n[[images]]\nname = "a"\ntexture = "low"\n[[images]]\nname = "b"\ntexture = "low"\n','\n',char(10)),'0df138880455e8e72494fa9b96ef9132277dff2b02ac68317b77fb5d6856dcc7','open',1794825232964,1800000000000);
CREATE TABLE images (
	study INTEGER NOT NULL,
	name VARCHAR(63) NOT NULL,
	sha256 VARCHAR(64) NOT NULL,
	width_px INTEGER NOT NULL,
	height_px INTEGER NOT NULL,
	png BLOB NOT NULL,
	truth BLOB,
	CONSTRAINT pk_images PRIMARY KEY (study, name),
	CONSTRAINT fk_images_study FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO images VALUES(1,'a','e5060f6f91bae365fd1777b54cac94df1fa06ba9ff76687df0e46013d415f209',12,12,X'89504e470d0a1a0a0000000d494844520000000c0000000c0800000000731e033b0000000c49444154789c636018bc0000009c000116c132090000000049454e44ae426082',NULL);
INSERT INTO images VALUES(1,'b','d01adea6816062b63cfde4bc6b4d0808a7d3111a75f49e9fcc0c7419783b9d3f',12,12,X'89504e470d0a1a0a0000000d494844520000000c0000000c0800000000731e033b0000001149444154789c6364644000268641c50100088700197414518e0000000049454e44ae426082',NULL);
CREATE TABLE participants (
	id INTEGER NOT NULL,
	study INTEGER NOT NULL,
	name VARCHAR(32) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_participants PRIMARY KEY (id),
	CONSTRAINT fk_participants_study FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE,
	CONSTRAINT uq_participants_name UNIQUE (name)
);
INSERT INTO participants VALUES(1,1,'phinbeqplvy',1800000000000);
INSERT INTO participants VALUES(2,1,'pfxwgteeh7q',1800000060000);
INSERT INTO participants VALUES(3,1,'pszjuv2sjoi',1800000070000);
INSERT INTO participants VALUES(4,1,'p2qfpbi5cay',1800000080000);
CREATE TABLE identities (
	participant INTEGER NOT NULL,
	study INTEGER NOT NULL,
	prolific_pid VARCHAR(64) NOT NULL,
	prolific_study VARCHAR(64) NOT NULL,
	prolific_session VARCHAR(64) NOT NULL,
	CONSTRAINT pk_identities PRIMARY KEY (participant),
	CONSTRAINT fk_identities_participant FOREIGN KEY(participant) REFERENCES participants (id) ON DELETE CASCADE,
	CONSTRAINT fk_identities_study FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE,
	CONSTRAINT uq_identities_study_prolific_pid UNIQUE (study, prolific_pid)
);
INSERT INTO identities VALUES(1,1,'5f00aa11bb22cc33dd44ee55','a-study','a-session');
CREATE TABLE links (
	id INTEGER NOT NULL,
	study INTEGER NOT NULL,
	token_hash VARCHAR(64) NOT NULL,
	participant INTEGER,
	created_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_links PRIMARY KEY (id),
	CONSTRAINT fk_links_participant FOREIGN KEY(participant) REFERENCES participants (id) ON DELETE SET NULL,
	CONSTRAINT fk_links_study FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE,
	CONSTRAINT uq_links_token_hash UNIQUE (token_hash)
);
INSERT INTO links VALUES(1,1,'b45b6894e1fd8efbec561f9cdc7dfa9431dd69b6d5c21bab0eaf6da9f409529a',2,1794825232999);
INSERT INTO links VALUES(2,1,'5eb57fe439320c88f82505700a679a396ed63774da1fafcf37a1bceccf815659',NULL,1794825232999);
CREATE TABLE sessions (
	id INTEGER NOT NULL,
	study INTEGER NOT NULL,
	participant INTEGER NOT NULL,
	name VARCHAR(32) NOT NULL,
	token_hash VARCHAR(64) NOT NULL,
	entry_hash VARCHAR(64),
	status VARCHAR(16) NOT NULL,
	software TEXT NOT NULL,
	started_at_ms BIGINT NOT NULL,
	finished_at_ms BIGINT,
	trials TEXT,
	CONSTRAINT pk_sessions PRIMARY KEY (id),
	CONSTRAINT fk_sessions_participant FOREIGN KEY(participant) REFERENCES participants (id) ON DELETE CASCADE,
	CONSTRAINT fk_sessions_study FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE,
	CONSTRAINT uq_sessions_name UNIQUE (name),
	CONSTRAINT uq_sessions_study_entry_hash UNIQUE (study, entry_hash),
	CONSTRAINT uq_sessions_token_hash UNIQUE (token_hash)
);
INSERT INTO sessions VALUES(1,1,1,'srkgymcrlll','5b5d0f5d701c2d5388804d507d76c2ea7e6f98c0c0607fe841d815d7014d3168',NULL,'completed','{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}',1800000000000,1794825233273,'{"image":["a","a"],"block":[0,0],"trial":[0,1],"i":[0,0],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO sessions VALUES(2,1,2,'spnxnkkrwlh','9a561b0e551e85d08a3ad7489a494e427722ee6584a8356dbc1366a914b06db0',NULL,'active','{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}',1800000060000,NULL,'{"image":["b","b"],"block":[0,0],"trial":[0,1],"i":[0,0],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO sessions VALUES(3,1,3,'sblu75uijij','9c3f3b87ad2fdf5aaa3c905753ce259b571d817de37a2661db2a1224980b6ff7',NULL,'withdrawn','{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}',1800000070000,1794825233417,'{"image":["a","a"],"block":[0,0],"trial":[0,1],"i":[1,1],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO sessions VALUES(4,1,4,'ssoojtuk4ul','371152f32a784f362d98a10bccc3ab0611e8fc9acfc036ce1858a7211dc2c992','a917451702a5df12d20f95e2f76b6acb670436617f1a319ad3d08c74252afb8d','active','{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}',1800000080000,NULL,'{"image":["a","a"],"block":[0,0],"trial":[0,1],"i":[1,1],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
CREATE TABLE assignments (
	session INTEGER NOT NULL,
	study INTEGER NOT NULL,
	position INTEGER NOT NULL,
	image VARCHAR(63) NOT NULL,
	unit INTEGER NOT NULL,
	CONSTRAINT pk_assignments PRIMARY KEY (session, position),
	CONSTRAINT fk_assignments_session FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE,
	CONSTRAINT fk_assignments_study FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO assignments VALUES(1,1,0,'a',0);
INSERT INTO assignments VALUES(2,1,0,'b',0);
INSERT INTO assignments VALUES(3,1,0,'a',1);
INSERT INTO assignments VALUES(4,1,0,'a',1);
CREATE TABLE responses (
	session INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	item INTEGER NOT NULL,
	image VARCHAR(63) NOT NULL,
	block INTEGER NOT NULL,
	trial INTEGER NOT NULL,
	i INTEGER NOT NULL,
	j INTEGER NOT NULL,
	practice BOOLEAN NOT NULL,
	catch BOOLEAN NOT NULL,
	same BOOLEAN NOT NULL,
	rt_ms FLOAT NOT NULL,
	"key" VARCHAR(16) NOT NULL,
	shown_at_ms BIGINT NOT NULL,
	cue_onset_ms FLOAT NOT NULL,
	cue_asked_ms FLOAT NOT NULL,
	cue_ms FLOAT NOT NULL,
	cue_frames INTEGER NOT NULL,
	image_onset_ms FLOAT NOT NULL,
	image_asked_ms FLOAT NOT NULL,
	image_ms FLOAT NOT NULL,
	image_frames INTEGER NOT NULL,
	response_onset_ms FLOAT NOT NULL,
	frames_dropped INTEGER NOT NULL,
	longest_gap_ms FLOAT NOT NULL,
	refresh_hz FLOAT NOT NULL,
	visible BOOLEAN NOT NULL,
	focused BOOLEAN NOT NULL,
	full_screen BOOLEAN NOT NULL,
	flags VARCHAR(200) NOT NULL,
	received_at_ms BIGINT NOT NULL, chosen BOOLEAN DEFAULT 0 NOT NULL,
	CONSTRAINT pk_responses PRIMARY KEY (session, seq),
	CONSTRAINT fk_responses_session FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO responses VALUES(1,0,0,'a',0,0,0,8,0,0,1,412.5,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000001000,0);
INSERT INTO responses VALUES(1,1,1,'a',0,1,0,8,0,0,1,412.5,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000001000,0);
INSERT INTO responses VALUES(1,2,0,'a',0,0,0,8,0,0,1,302.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'cue_late',1800000002000,0);
INSERT INTO responses VALUES(1,3,0,'a',0,0,0,8,0,0,0,303.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000,0);
INSERT INTO responses VALUES(1,4,0,'a',0,0,0,8,0,0,1,304.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000,0);
INSERT INTO responses VALUES(1,5,0,'a',0,0,0,8,0,0,0,305.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000,0);
INSERT INTO responses VALUES(1,6,0,'a',0,0,0,8,0,0,1,306.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000,0);
INSERT INTO responses VALUES(1,7,0,'a',0,0,0,8,0,0,0,307.24999999999999999,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000,0);
INSERT INTO responses VALUES(1,8,0,'a',0,0,0,8,0,0,1,308.24999999999999999,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000,0);
INSERT INTO responses VALUES(1,9,0,'a',0,0,0,8,0,0,0,309.24999999999999999,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000,0);
INSERT INTO responses VALUES(2,0,0,'b',0,0,2,7,0,0,0,412.5,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000061000,1);
CREATE TABLE events (
	session INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	kind VARCHAR(32) NOT NULL,
	at_ms BIGINT NOT NULL,
	data TEXT NOT NULL,
	received_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_events PRIMARY KEY (session, seq),
	CONSTRAINT fk_events_session FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO events VALUES(1,10,'consent',1800000000000,'{"agreed":true}',1800000000005);
INSERT INTO events VALUES(1,11,'comment',1800000000000,'{"text":"Très bien, \"merci\"; l''image = un bateau\n=1+1"}',1800000000005);
INSERT INTO events VALUES(2,1,'device',1800000000000,'{"refresh_hz":59.94}',1800000061000);
CREATE TABLE researchers (
	id INTEGER NOT NULL,
	name VARCHAR(64) NOT NULL,
	password_hash TEXT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	signed_out_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_researchers PRIMARY KEY (id),
	CONSTRAINT uq_researchers_name UNIQUE (name)
);
INSERT INTO researchers VALUES(1,'ann','$argon2id$v=19$m=1,t=1,p=1$c2FsdHNhbHQ$aGFzaA',1794825233481,0);
CREATE TABLE tokens (
	id INTEGER NOT NULL,
	researcher INTEGER NOT NULL,
	label VARCHAR(64) NOT NULL,
	token_hash VARCHAR(64) NOT NULL,
	created_at_ms BIGINT NOT NULL,
	last_used_at_ms BIGINT,
	CONSTRAINT pk_tokens PRIMARY KEY (id),
	CONSTRAINT fk_tokens_researcher FOREIGN KEY(researcher) REFERENCES researchers (id) ON DELETE CASCADE,
	CONSTRAINT uq_tokens_token_hash UNIQUE (token_hash)
);
INSERT INTO tokens VALUES(1,1,'for a script','c434998ea92efede8d12bc11f096f7bd0b9f1d92cb30d4b7c712627b97e62139',1794825233497,NULL);
CREATE TABLE sign_ins (
	token_hash VARCHAR(64) NOT NULL,
	researcher INTEGER NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_sign_ins PRIMARY KEY (token_hash),
	CONSTRAINT fk_sign_ins_researcher FOREIGN KEY(researcher) REFERENCES researchers (id) ON DELETE CASCADE
);
CREATE TABLE settings (
	name VARCHAR(64) NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_settings PRIMARY KEY (name)
);
CREATE TABLE batches (
	id INTEGER NOT NULL,
	session INTEGER NOT NULL,
	image VARCHAR(63) NOT NULL,
	rule VARCHAR(32) NOT NULL,
	seed BIGINT NOT NULL,
	answers INTEGER NOT NULL,
	expected_error FLOAT NOT NULL,
	chosen_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_batches PRIMARY KEY (id),
	CONSTRAINT fk_batches_session FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO batches VALUES(1,2,'b','variance_reduction',4611686018427387905,10,0.125,1800000060500);
CREATE TABLE takings (
	batch INTEGER NOT NULL,
	session INTEGER NOT NULL,
	records INTEGER NOT NULL,
	ahead INTEGER NOT NULL,
	CONSTRAINT pk_takings PRIMARY KEY (batch, session),
	CONSTRAINT fk_takings_batch FOREIGN KEY(batch) REFERENCES batches (id) ON DELETE CASCADE,
	CONSTRAINT fk_takings_session FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO takings VALUES(1,1,12,0);
INSERT INTO takings VALUES(1,2,0,1);
CREATE TABLE choices (
	session INTEGER NOT NULL,
	item INTEGER NOT NULL,
	batch INTEGER NOT NULL,
	i INTEGER NOT NULL,
	j INTEGER NOT NULL,
	CONSTRAINT pk_choices PRIMARY KEY (session, item),
	CONSTRAINT fk_choices_session FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE,
	CONSTRAINT fk_choices_batch FOREIGN KEY(batch) REFERENCES batches (id) ON DELETE CASCADE
);
INSERT INTO choices VALUES(2,0,1,2,7);
CREATE TABLE stops (
	session INTEGER NOT NULL,
	image VARCHAR(63) NOT NULL,
	item INTEGER NOT NULL,
	until INTEGER NOT NULL,
	answers INTEGER NOT NULL,
	expected_error FLOAT NOT NULL,
	stopped_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_stops PRIMARY KEY (session, image),
	CONSTRAINT fk_stops_session FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO stops VALUES(1,'a',1,2,9,0.0625,1800000001500);
CREATE TABLE logins (
	token_hash VARCHAR(64) NOT NULL,
	researcher INTEGER NOT NULL,
	made_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_logins PRIMARY KEY (token_hash),
	CONSTRAINT fk_logins_researcher FOREIGN KEY(researcher) REFERENCES researchers (id) ON DELETE CASCADE
);
INSERT INTO logins VALUES('0000000000000000000000000000000000000000000000000000000000000001',1,1794825300000);
CREATE INDEX ix_sessions_participant ON sessions (participant);
CREATE INDEX ix_sessions_study_status ON sessions (study, status);
CREATE INDEX ix_assignments_study_image_unit ON assignments (study, image, unit);
CREATE INDEX ix_tokens_researcher ON tokens (researcher);
CREATE INDEX ix_batches_session ON batches (session);
CREATE INDEX ix_takings_session ON takings (session);
CREATE INDEX ix_choices_batch ON choices (batch);
CREATE INDEX ix_logins_researcher ON logins (researcher);
