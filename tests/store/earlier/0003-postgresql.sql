-- A small database as vseg 0.1.0 left it under schema 0003, on PostgreSQL. It stays as it is: it has to open for good.
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.assignments (
    session integer NOT NULL,
    study integer NOT NULL,
    "position" integer NOT NULL,
    image character varying(63) NOT NULL,
    unit integer NOT NULL
);
CREATE TABLE public.batches (
    id integer NOT NULL,
    session integer NOT NULL,
    image character varying(63) NOT NULL,
    rule character varying(32) NOT NULL,
    seed bigint NOT NULL,
    answers integer NOT NULL,
    expected_error double precision NOT NULL,
    chosen_at_ms bigint NOT NULL
);
CREATE SEQUENCE public.batches_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.batches_id_seq OWNED BY public.batches.id;
CREATE TABLE public.choices (
    session integer NOT NULL,
    item integer NOT NULL,
    batch integer NOT NULL,
    i integer NOT NULL,
    j integer NOT NULL
);
CREATE TABLE public.events (
    session integer NOT NULL,
    seq integer NOT NULL,
    kind character varying(32) NOT NULL,
    at_ms bigint NOT NULL,
    data text NOT NULL,
    received_at_ms bigint NOT NULL
);
CREATE TABLE public.identities (
    participant integer NOT NULL,
    study integer NOT NULL,
    prolific_pid character varying(64) NOT NULL,
    prolific_study character varying(64) NOT NULL,
    prolific_session character varying(64) NOT NULL
);
CREATE TABLE public.images (
    study integer NOT NULL,
    name character varying(63) NOT NULL,
    sha256 character varying(64) NOT NULL,
    width_px integer NOT NULL,
    height_px integer NOT NULL,
    png bytea NOT NULL,
    truth bytea
);
CREATE TABLE public.links (
    id integer NOT NULL,
    study integer NOT NULL,
    token_hash character varying(64) NOT NULL,
    participant integer,
    created_at_ms bigint NOT NULL
);
CREATE SEQUENCE public.links_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.links_id_seq OWNED BY public.links.id;
CREATE TABLE public.logins (
    token_hash character varying(64) NOT NULL,
    researcher integer NOT NULL,
    made_at_ms bigint NOT NULL
);
CREATE TABLE public.participants (
    id integer NOT NULL,
    study integer NOT NULL,
    name character varying(32) NOT NULL,
    created_at_ms bigint NOT NULL
);
CREATE SEQUENCE public.participants_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.participants_id_seq OWNED BY public.participants.id;
CREATE TABLE public.researchers (
    id integer NOT NULL,
    name character varying(64) NOT NULL,
    password_hash text NOT NULL,
    created_at_ms bigint NOT NULL,
    signed_out_at_ms bigint NOT NULL
);
CREATE SEQUENCE public.researchers_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.researchers_id_seq OWNED BY public.researchers.id;
CREATE TABLE public.responses (
    session integer NOT NULL,
    seq integer NOT NULL,
    item integer NOT NULL,
    image character varying(63) NOT NULL,
    block integer NOT NULL,
    trial integer NOT NULL,
    i integer NOT NULL,
    j integer NOT NULL,
    practice boolean NOT NULL,
    catch boolean NOT NULL,
    same boolean NOT NULL,
    rt_ms double precision NOT NULL,
    key character varying(16) NOT NULL,
    shown_at_ms bigint NOT NULL,
    cue_onset_ms double precision NOT NULL,
    cue_asked_ms double precision NOT NULL,
    cue_ms double precision NOT NULL,
    cue_frames integer NOT NULL,
    image_onset_ms double precision NOT NULL,
    image_asked_ms double precision NOT NULL,
    image_ms double precision NOT NULL,
    image_frames integer NOT NULL,
    response_onset_ms double precision NOT NULL,
    frames_dropped integer NOT NULL,
    longest_gap_ms double precision NOT NULL,
    refresh_hz double precision NOT NULL,
    visible boolean NOT NULL,
    focused boolean NOT NULL,
    full_screen boolean NOT NULL,
    flags character varying(200) NOT NULL,
    received_at_ms bigint NOT NULL,
    chosen boolean DEFAULT false NOT NULL
);
CREATE TABLE public.sessions (
    id integer NOT NULL,
    study integer NOT NULL,
    participant integer NOT NULL,
    name character varying(32) NOT NULL,
    token_hash character varying(64) NOT NULL,
    entry_hash character varying(64),
    status character varying(16) NOT NULL,
    software text NOT NULL,
    started_at_ms bigint NOT NULL,
    finished_at_ms bigint,
    trials text
);
CREATE SEQUENCE public.sessions_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.sessions_id_seq OWNED BY public.sessions.id;
CREATE TABLE public.settings (
    name character varying(64) NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.sign_ins (
    token_hash character varying(64) NOT NULL,
    researcher integer NOT NULL,
    expires_at_ms bigint NOT NULL
);
CREATE TABLE public.stops (
    session integer NOT NULL,
    image character varying(63) NOT NULL,
    item integer NOT NULL,
    until integer NOT NULL,
    answers integer NOT NULL,
    expected_error double precision NOT NULL,
    stopped_at_ms bigint NOT NULL
);
CREATE TABLE public.studies (
    id integer NOT NULL,
    name character varying(63) NOT NULL,
    text text NOT NULL,
    digest character varying(64) NOT NULL,
    status character varying(16) NOT NULL,
    created_at_ms bigint NOT NULL,
    frozen_at_ms bigint
);
CREATE SEQUENCE public.studies_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.studies_id_seq OWNED BY public.studies.id;
CREATE TABLE public.takings (
    batch integer NOT NULL,
    session integer NOT NULL,
    records integer NOT NULL,
    ahead integer NOT NULL
);
CREATE TABLE public.tokens (
    id integer NOT NULL,
    researcher integer NOT NULL,
    label character varying(64) NOT NULL,
    token_hash character varying(64) NOT NULL,
    created_at_ms bigint NOT NULL,
    last_used_at_ms bigint
);
CREATE SEQUENCE public.tokens_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tokens_id_seq OWNED BY public.tokens.id;
ALTER TABLE ONLY public.batches ALTER COLUMN id SET DEFAULT nextval('public.batches_id_seq'::regclass);
ALTER TABLE ONLY public.links ALTER COLUMN id SET DEFAULT nextval('public.links_id_seq'::regclass);
ALTER TABLE ONLY public.participants ALTER COLUMN id SET DEFAULT nextval('public.participants_id_seq'::regclass);
ALTER TABLE ONLY public.researchers ALTER COLUMN id SET DEFAULT nextval('public.researchers_id_seq'::regclass);
ALTER TABLE ONLY public.sessions ALTER COLUMN id SET DEFAULT nextval('public.sessions_id_seq'::regclass);
ALTER TABLE ONLY public.studies ALTER COLUMN id SET DEFAULT nextval('public.studies_id_seq'::regclass);
ALTER TABLE ONLY public.tokens ALTER COLUMN id SET DEFAULT nextval('public.tokens_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0003');
INSERT INTO public.assignments VALUES (1, 1, 0, 'a', 0);
INSERT INTO public.assignments VALUES (2, 1, 0, 'b', 0);
INSERT INTO public.assignments VALUES (3, 1, 0, 'a', 1);
INSERT INTO public.assignments VALUES (4, 1, 0, 'a', 1);
INSERT INTO public.batches VALUES (1, 2, 'b', 'variance_reduction', 4611686018427387905, 10, 0.125, 1800000060500);
INSERT INTO public.choices VALUES (2, 0, 1, 2, 7);
INSERT INTO public.events VALUES (1, 10, 'consent', 1800000000000, '{"agreed":true}', 1800000000005);
INSERT INTO public.events VALUES (1, 11, 'comment', 1800000000000, '{"text":"Très bien, \"merci\"; l''image = un bateau\n=1+1"}', 1800000000005);
INSERT INTO public.events VALUES (2, 1, 'device', 1800000000000, '{"refresh_hz":59.94}', 1800000061000);
INSERT INTO public.identities VALUES (1, 1, '5f00aa11bb22cc33dd44ee55', 'a-study', 'a-session');
INSERT INTO public.images VALUES (1, 'a', 'e5060f6f91bae365fd1777b54cac94df1fa06ba9ff76687df0e46013d415f209', 12, 12, '\x89504e470d0a1a0a0000000d494844520000000c0000000c0800000000731e033b0000000c49444154789c636018bc0000009c000116c132090000000049454e44ae426082', NULL);
INSERT INTO public.images VALUES (1, 'b', 'd01adea6816062b63cfde4bc6b4d0808a7d3111a75f49e9fcc0c7419783b9d3f', 12, 12, '\x89504e470d0a1a0a0000000d494844520000000c0000000c0800000000731e033b0000001149444154789c6364644000268641c50100088700197414518e0000000049454e44ae426082', NULL);
INSERT INTO public.links VALUES (1, 1, 'b45b6894e1fd8efbec561f9cdc7dfa9431dd69b6d5c21bab0eaf6da9f409529a', 2, 1794825232999);
INSERT INTO public.links VALUES (2, 1, '5eb57fe439320c88f82505700a679a396ed63774da1fafcf37a1bceccf815659', NULL, 1794825232999);
INSERT INTO public.logins VALUES ('0000000000000000000000000000000000000000000000000000000000000001', 1, 1794825300000);
INSERT INTO public.participants VALUES (1, 1, 'phinbeqplvy', 1800000000000);
INSERT INTO public.participants VALUES (2, 1, 'pfxwgteeh7q', 1800000060000);
INSERT INTO public.participants VALUES (3, 1, 'pszjuv2sjoi', 1800000070000);
INSERT INTO public.participants VALUES (4, 1, 'p2qfpbi5cay', 1800000080000);
INSERT INTO public.researchers VALUES (1, 'ann', '$argon2id$v=19$m=1,t=1,p=1$c2FsdHNhbHQ$aGFzaA', 1794825233481, 0);
INSERT INTO public.responses VALUES (1, 0, 0, 'a', 0, 0, 0, 8, false, false, true, 412.5, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000001000, false);
INSERT INTO public.responses VALUES (1, 1, 1, 'a', 0, 1, 0, 8, false, false, true, 412.5, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000001000, false);
INSERT INTO public.responses VALUES (1, 2, 0, 'a', 0, 0, 0, 8, false, false, true, 302.25, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, 'cue_late', 1800000002000, false);
INSERT INTO public.responses VALUES (1, 3, 0, 'a', 0, 0, 0, 8, false, false, false, 303.25, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000002000, false);
INSERT INTO public.responses VALUES (1, 4, 0, 'a', 0, 0, 0, 8, false, false, true, 304.25, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000002000, false);
INSERT INTO public.responses VALUES (1, 5, 0, 'a', 0, 0, 0, 8, false, false, false, 305.25, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000002000, false);
INSERT INTO public.responses VALUES (1, 6, 0, 'a', 0, 0, 0, 8, false, false, true, 306.25, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000002000, false);
INSERT INTO public.responses VALUES (1, 7, 0, 'a', 0, 0, 0, 8, false, false, false, 307.25, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000002000, false);
INSERT INTO public.responses VALUES (1, 8, 0, 'a', 0, 0, 0, 8, false, false, true, 308.25, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000002000, false);
INSERT INTO public.responses VALUES (1, 9, 0, 'a', 0, 0, 0, 8, false, false, false, 309.25, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000002000, false);
INSERT INTO public.responses VALUES (2, 0, 0, 'b', 0, 0, 2, 7, false, false, false, 412.5, 'f', 1800000000000, 10, 300, 300.1, 18, 310.1, 300, 299.9, 18, 610, 0, 16.8, 60, true, true, true, '', 1800000061000, true);
INSERT INTO public.sessions VALUES (1, 1, 1, 'srkgymcrlll', '5b5d0f5d701c2d5388804d507d76c2ea7e6f98c0c0607fe841d815d7014d3168', NULL, 'completed', '{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}', 1800000000000, 1794825233273, '{"image":["a","a"],"block":[0,0],"trial":[0,1],"i":[0,0],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO public.sessions VALUES (2, 1, 2, 'spnxnkkrwlh', '9a561b0e551e85d08a3ad7489a494e427722ee6584a8356dbc1366a914b06db0', NULL, 'active', '{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}', 1800000060000, NULL, '{"image":["b","b"],"block":[0,0],"trial":[0,1],"i":[0,0],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO public.sessions VALUES (3, 1, 3, 'sblu75uijij', '9c3f3b87ad2fdf5aaa3c905753ce259b571d817de37a2661db2a1224980b6ff7', NULL, 'withdrawn', '{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}', 1800000070000, 1794825233417, '{"image":["a","a"],"block":[0,0],"trial":[0,1],"i":[1,1],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO public.sessions VALUES (4, 1, 4, 'ssoojtuk4ul', '371152f32a784f362d98a10bccc3ab0611e8fc9acfc036ce1858a7211dc2c992', 'a917451702a5df12d20f95e2f76b6acb670436617f1a319ad3d08c74252afb8d', 'active', '{"vseg": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}', 1800000080000, NULL, '{"image":["a","a"],"block":[0,0],"trial":[0,1],"i":[1,1],"j":[8,8],"x1":[1.0,1.0],"y1":[1.0,1.0],"x2":[9.0,9.0],"y2":[9.0,9.0],"practice":[false,false],"catch":[false,false],"answer":[null,null]}');
INSERT INTO public.stops VALUES (1, 'a', 1, 2, 9, 0.0625, 1800000001500);
INSERT INTO public.studies VALUES (1, 'kept', '
name = "kept"
segments = 2
participants = 5
layout = {grid = 3}
practice = {trials = 0}
catch = {per_block = 0}
[prolific]
completion_code = "THANKS42"
[design]
name="adaptive"
trials=8

[[images]]
name = "a"
texture = "low"
[[images]]
name = "b"
texture = "low"
', '0df138880455e8e72494fa9b96ef9132277dff2b02ac68317b77fb5d6856dcc7', 'open', 1794825232964, 1800000000000);
INSERT INTO public.takings VALUES (1, 1, 12, 0);
INSERT INTO public.takings VALUES (1, 2, 0, 1);
INSERT INTO public.tokens VALUES (1, 1, 'for a script', 'c434998ea92efede8d12bc11f096f7bd0b9f1d92cb30d4b7c712627b97e62139', 1794825233497, NULL);
SELECT pg_catalog.setval('public.batches_id_seq', 1, true);
SELECT pg_catalog.setval('public.links_id_seq', 2, true);
SELECT pg_catalog.setval('public.participants_id_seq', 4, true);
SELECT pg_catalog.setval('public.researchers_id_seq', 1, true);
SELECT pg_catalog.setval('public.sessions_id_seq', 4, true);
SELECT pg_catalog.setval('public.studies_id_seq', 1, true);
SELECT pg_catalog.setval('public.tokens_id_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.assignments
    ADD CONSTRAINT pk_assignments PRIMARY KEY (session, "position");
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT pk_batches PRIMARY KEY (id);
ALTER TABLE ONLY public.choices
    ADD CONSTRAINT pk_choices PRIMARY KEY (session, item);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT pk_events PRIMARY KEY (session, seq);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT pk_identities PRIMARY KEY (participant);
ALTER TABLE ONLY public.images
    ADD CONSTRAINT pk_images PRIMARY KEY (study, name);
ALTER TABLE ONLY public.links
    ADD CONSTRAINT pk_links PRIMARY KEY (id);
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT pk_logins PRIMARY KEY (token_hash);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT pk_participants PRIMARY KEY (id);
ALTER TABLE ONLY public.researchers
    ADD CONSTRAINT pk_researchers PRIMARY KEY (id);
ALTER TABLE ONLY public.responses
    ADD CONSTRAINT pk_responses PRIMARY KEY (session, seq);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT pk_sessions PRIMARY KEY (id);
ALTER TABLE ONLY public.settings
    ADD CONSTRAINT pk_settings PRIMARY KEY (name);
ALTER TABLE ONLY public.sign_ins
    ADD CONSTRAINT pk_sign_ins PRIMARY KEY (token_hash);
ALTER TABLE ONLY public.stops
    ADD CONSTRAINT pk_stops PRIMARY KEY (session, image);
ALTER TABLE ONLY public.studies
    ADD CONSTRAINT pk_studies PRIMARY KEY (id);
ALTER TABLE ONLY public.takings
    ADD CONSTRAINT pk_takings PRIMARY KEY (batch, session);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT pk_tokens PRIMARY KEY (id);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT uq_identities_study_prolific_pid UNIQUE (study, prolific_pid);
ALTER TABLE ONLY public.links
    ADD CONSTRAINT uq_links_token_hash UNIQUE (token_hash);
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT uq_participants_name UNIQUE (name);
ALTER TABLE ONLY public.researchers
    ADD CONSTRAINT uq_researchers_name UNIQUE (name);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT uq_sessions_name UNIQUE (name);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT uq_sessions_study_entry_hash UNIQUE (study, entry_hash);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT uq_sessions_token_hash UNIQUE (token_hash);
ALTER TABLE ONLY public.studies
    ADD CONSTRAINT uq_studies_name UNIQUE (name);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT uq_tokens_token_hash UNIQUE (token_hash);
CREATE INDEX ix_assignments_study_image_unit ON public.assignments USING btree (study, image, unit);
CREATE INDEX ix_batches_session ON public.batches USING btree (session);
CREATE INDEX ix_choices_batch ON public.choices USING btree (batch);
CREATE INDEX ix_logins_researcher ON public.logins USING btree (researcher);
CREATE INDEX ix_sessions_participant ON public.sessions USING btree (participant);
CREATE INDEX ix_sessions_study_status ON public.sessions USING btree (study, status);
CREATE INDEX ix_takings_session ON public.takings USING btree (session);
CREATE INDEX ix_tokens_researcher ON public.tokens USING btree (researcher);
ALTER TABLE ONLY public.assignments
    ADD CONSTRAINT fk_assignments_session FOREIGN KEY (session) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.assignments
    ADD CONSTRAINT fk_assignments_study FOREIGN KEY (study) REFERENCES public.studies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT fk_batches_session FOREIGN KEY (session) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.choices
    ADD CONSTRAINT fk_choices_batch FOREIGN KEY (batch) REFERENCES public.batches(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.choices
    ADD CONSTRAINT fk_choices_session FOREIGN KEY (session) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT fk_events_session FOREIGN KEY (session) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT fk_identities_participant FOREIGN KEY (participant) REFERENCES public.participants(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT fk_identities_study FOREIGN KEY (study) REFERENCES public.studies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.images
    ADD CONSTRAINT fk_images_study FOREIGN KEY (study) REFERENCES public.studies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.links
    ADD CONSTRAINT fk_links_participant FOREIGN KEY (participant) REFERENCES public.participants(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.links
    ADD CONSTRAINT fk_links_study FOREIGN KEY (study) REFERENCES public.studies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT fk_logins_researcher FOREIGN KEY (researcher) REFERENCES public.researchers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.participants
    ADD CONSTRAINT fk_participants_study FOREIGN KEY (study) REFERENCES public.studies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.responses
    ADD CONSTRAINT fk_responses_session FOREIGN KEY (session) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT fk_sessions_participant FOREIGN KEY (participant) REFERENCES public.participants(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT fk_sessions_study FOREIGN KEY (study) REFERENCES public.studies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sign_ins
    ADD CONSTRAINT fk_sign_ins_researcher FOREIGN KEY (researcher) REFERENCES public.researchers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.stops
    ADD CONSTRAINT fk_stops_session FOREIGN KEY (session) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.takings
    ADD CONSTRAINT fk_takings_batch FOREIGN KEY (batch) REFERENCES public.batches(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.takings
    ADD CONSTRAINT fk_takings_session FOREIGN KEY (session) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT fk_tokens_researcher FOREIGN KEY (researcher) REFERENCES public.researchers(id) ON DELETE CASCADE;
