-- A small database as vseg 0.1.0 left it under schema 0001, on SQLite. It stays as it is: it has to open for good.
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES('0001');
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
INSERT INTO studies VALUES(1,'kept',replace('\nname = "kept"\nsegments = 2\nparticipants = 5\nlayout = {grid = 3}\npractice = {trials = 0}\ncatch = {per_block = 0}\n[prolific]\ncompletion_code = "THANKS42"\n\n[[images]]\nname = "a"\ntexture = "low"\n[[images]]\nname = "b"\ntexture = "low"\n','\n',char(10)),'733042748eaf819d7c18df7447ac0229a5893d2751ec2e88355e23f42a2956ac','open',1794825226475,1800000000000);
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
INSERT INTO participants VALUES(1,1,'pv67usohl42',1800000000000);
INSERT INTO participants VALUES(2,1,'pvyhaidb3rs',1800000060000);
INSERT INTO participants VALUES(3,1,'pkpcvim7qnn',1800000070000);
INSERT INTO participants VALUES(4,1,'pclfl7d5r4d',1800000080000);
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
INSERT INTO links VALUES(1,1,'58768ba11ee09bf245618e59b4925f867872743b0ef15f0ab32889932bbb845a',2,1794825226503);
INSERT INTO links VALUES(2,1,'f6695a1f274500e3dada20bd0c959a0c34de60e0704ab0a564b7e3e47fa3f896',NULL,1794825226503);
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
INSERT INTO sessions VALUES(1,1,1,'sghdc67lq2r','3da65a520b420e6b3cee37c6a7d0b2f7dbc98e60637e231febb133e831dd431a',NULL,'completed','{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}',1800000000000,1794825226762,'{"image":["a","a"],"block":[0,0],"trial":[0,1],"i":[0,0],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO sessions VALUES(2,1,2,'sere6qxurnq','71a43ce046cb8f7dbf67a00a20e7c409b5a4392e76a8efa73ce5ae3e2e2e32d9',NULL,'active','{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}',1800000060000,NULL,'{"image":["b","b"],"block":[0,0],"trial":[0,1],"i":[0,0],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO sessions VALUES(3,1,3,'so5jcxf3l5y','de05484091886e75b378761695e5dd26e684599d2ce7ea94004f48762e9e2fae',NULL,'withdrawn','{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}',1800000070000,1794825226890,'{"image":["a","a"],"block":[0,0],"trial":[0,1],"i":[1,1],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO sessions VALUES(4,1,4,'sfet6gnkcef','f8c85e93188d5bd996f3f436705f8f11f87ab3c4b66746e3ebafe53d0bccc33e','a917451702a5df12d20f95e2f76b6acb670436617f1a319ad3d08c74252afb8d','active','{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}',1800000080000,NULL,'{"image":["a","a"],"block":[0,0],"trial":[0,1],"i":[1,1],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
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
	received_at_ms BIGINT NOT NULL,
	CONSTRAINT pk_responses PRIMARY KEY (session, seq),
	CONSTRAINT fk_responses_session FOREIGN KEY(session) REFERENCES sessions (id) ON DELETE CASCADE
);
INSERT INTO responses VALUES(1,0,0,'a',0,0,0,8,0,0,1,412.5,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000001000);
INSERT INTO responses VALUES(1,1,1,'a',0,1,0,8,0,0,1,412.5,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000001000);
INSERT INTO responses VALUES(1,2,0,'a',0,0,0,8,0,0,1,302.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'cue_late',1800000002000);
INSERT INTO responses VALUES(1,3,0,'a',0,0,0,8,0,0,0,303.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000);
INSERT INTO responses VALUES(1,4,0,'a',0,0,0,8,0,0,1,304.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000);
INSERT INTO responses VALUES(1,5,0,'a',0,0,0,8,0,0,0,305.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000);
INSERT INTO responses VALUES(1,6,0,'a',0,0,0,8,0,0,1,306.25,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000);
INSERT INTO responses VALUES(1,7,0,'a',0,0,0,8,0,0,0,307.24999999999999999,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000);
INSERT INTO responses VALUES(1,8,0,'a',0,0,0,8,0,0,1,308.24999999999999999,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000);
INSERT INTO responses VALUES(1,9,0,'a',0,0,0,8,0,0,0,309.24999999999999999,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000002000);
INSERT INTO responses VALUES(2,0,0,'b',0,0,0,8,0,0,0,412.5,'f',1800000000000,10.0,300.0,300.10000000000002272,18,310.10000000000002273,300.0,299.89999999999997727,18,610.0,0,16.80000000000000071,60.0,1,1,1,'',1800000061000);
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
INSERT INTO researchers VALUES(1,'ann','$argon2id$v=19$m=1,t=1,p=1$c2FsdHNhbHQ$aGFzaA',1794825226949,0);
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
INSERT INTO tokens VALUES(1,1,'for a script','9f7a9c18ee44510a89eed590f3d42418fcf58be742892728f9234ffd93799344',1794825226965,NULL);
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
INSERT INTO settings VALUES('cookie_key','not a real one');
CREATE INDEX ix_sessions_participant ON sessions (participant);
CREATE INDEX ix_sessions_study_status ON sessions (study, status);
CREATE INDEX ix_assignments_study_image_unit ON assignments (study, image, unit);
CREATE INDEX ix_tokens_researcher ON tokens (researcher);
