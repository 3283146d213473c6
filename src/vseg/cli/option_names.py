"""Errors of the library in the words of the command line: they name parameters, a user typed options.

The library knows nothing of options, since its functions are also called from Python and by the server.
"""

_LOCATIONS = {"give the layout that was used": "give the --grid that was used"}
_DATABASE = {
    "give the address of the database that the server uses": "give the database that the server uses with --db URL"
}
_SIMULATION = {"got trials=": "got --trials "}
_FIT_METHODS = {
    f"{name} ({method})": f"--{name.replace('_', '-')} ({method})"
    for method, names in {
        "posterior": ("prior", "lapses", "draws", "budget"),
        "penalised": (
            "smoothness",
            "loss",
            "solver",
            "kernel",
            "weights",
            "max_iterations",
            "learning_rate",
            "epsilon",
        ),
    }.items()
    for name in names
} | {"out, or choose the method ": "out, or use --method "}

OPTIONS_IN_MESSAGES = {
    "fit": {
        **_LOCATIONS,
        **_FIT_METHODS,
        "give its file as picture": "give its file with --picture",
        "fit by participant to use it": "add --by participant to use it",
        "give a number for smoothness instead": "give a number with --smoothness instead",
        "choose one image, or fit each image ": "choose one with --image NAME, or fit each image ",
        "separately (by image)": "separately with --by image",
        "images; choose one image": "images; choose one with --image NAME",
        "Unknown kernel ": "--kernel: unknown kernel ",
        ", eight, gaussian:WIDTH, or give an array or a matrix": ", eight, gaussian:WIDTH or auto",
        "with the kernel 'auto' leave smoothness 'auto'": "with --kernel auto leave --smoothness auto",
        "take the answers to fewer with responses.coarsen(vseg.Grid(32)), or use vseg.reconstruct": (
            "use --method penalised"
        ),
        "only where each is fitted; fit by participant": "only with --by participant",
        "for each participant; give several, or 'auto'": "for each participant; give --segments several, or auto",
        "Give the number of segments; ": "Give the number of segments with --segments; ",
    },
    "groups": {
        "give another folder, or a table of groups": "give another folder, or a table of groups with --table",
    },
    "import": {
        **_LOCATIONS,
        "so the layout is needed: a grid, or the points": "so --grid or --points is needed",
        "give the image size or the folder of the images, or map image_width and image_height": (
            "give --image-size WxH or --images FOLDER, or --map image_width=COLUMN and --map image_height=COLUMN"
        ),
        "Give the layout that was used and the right ": "Give the --grid or --points that was used and the right ",
        "image size, or no layout to take the dots' positions as the locations": (
            "--image-size, or leave out --grid and --points to take the dots' positions as the locations"
        ),
        "to convert the times, map the ": "to convert the times, import again with ",
        "column as rt_ms=": "--map rt_ms=",
        "give the image size too": "give --image-size too",
        "give a grid, and each dot": "give --grid, and each dot",
        "Give a grid, and each dot": "Give --grid, and each dot",
    },
    "study": {
        "give the path of its program as browser": "give the path of its program with --browser PATH",
        "path of another as browser": "path of another with --browser PATH",
    },
    "models": {
        "choose another folder, or force their replacement": "choose another --out, or use --force to replace them",
        "leaves the number of segments free; give the number": (
            "leaves the number of segments free; give --segments the number"
        ),
    },
    "plan": {
        **_SIMULATION,
        "A participant on ": "--trials: a participant on ",
        "A condition has ": "--participants: a condition has ",
        "Unknown method ": "--methods: unknown method ",
        "The mean entropy of ": "--entropy, --against: the mean entropy of ",
        "only grids can be planned: give a grid instead": (
            "only grids can be planned: leave out the study and give --grid"
        ),
    },
    "simulate": {
        **_SIMULATION,
        "Expected a mean entropy of ": "--entropy: expected a mean entropy of ",
        "Expected xi from ": "--xi: expected a size from ",
    },
}
"""For each command: words of the library, and what the command prints instead."""
OPTIONS_IN_MESSAGES["import-jspsych"] = OPTIONS_IN_MESSAGES["import"]
OPTIONS_IN_MESSAGES |= dict.fromkeys(("backup", "erase", "export", "links", "serve"), _DATABASE)


def name_options(message: str, command: str) -> str:
    """Replace the names of parameters in a message of the library by the options of a command."""
    for words, replacement in OPTIONS_IN_MESSAGES.get(command, {}).items():
        message = message.replace(words, replacement)
    return message
