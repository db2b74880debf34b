"""The CDK app: `cdk synth -c stage=dev`, or `python app.py`.

Context: `stage` (local, dev, stage, prod), `account` and `region` (else the deploying profile's), `vendor_url`
(stage local: where the vendor simulator is), `build_dir` (else the variable PENSTOCK_BUILD_DIR, else build/).
"""

from __future__ import annotations

import sys

from infra.main import main

if __name__ == "__main__":
    sys.exit(main())
